-- +goose Up

-- docs/tables.md says what each table and column means. A test compares it with this file.
-- Ids are compared and sorted byte by byte: COLLATE "C".
-- The constraints repeat what P1 to P4 promise: if a gate is ever wrong, the ledger refuses.

CREATE TABLE campaigns (
    id            TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    quantity      BIGINT,
    opens_at      BIGINT,
    closes_at     BIGINT,
    paused        BOOLEAN          NOT NULL DEFAULT false,
    closed        BOOLEAN          NOT NULL DEFAULT false,
    version       BIGINT           NOT NULL,
    terms_version BIGINT           NOT NULL,
    pace          BIGINT,
    waitlist      BOOLEAN          NOT NULL DEFAULT false,
    burns         BOOLEAN          NOT NULL DEFAULT FALSE,
    applied       BIGINT           NOT NULL,
    gate          TEXT COLLATE "C" NOT NULL,
    epoch         BIGINT           NOT NULL,
    ceiling       BIGINT           NOT NULL DEFAULT 0,
    attempt       BIGINT           NOT NULL DEFAULT 0,
    rebuilding_at BIGINT,
    secret        TEXT             NOT NULL,
    in_force      BIGINT           NOT NULL DEFAULT 0,
    issued        BIGINT           NOT NULL DEFAULT 0,
    last_number   BIGINT           NOT NULL DEFAULT 0,
    drained_through BIGINT NOT NULL DEFAULT 0,
    dead_letters  BIGINT NOT NULL DEFAULT 0,
    position      BIGINT           NOT NULL DEFAULT 0,
    quarantined       BIGINT           NOT NULL DEFAULT 0,
    quarantined_until BIGINT           NOT NULL DEFAULT 0,
    was_opens_at  BIGINT,
    was_closes_at BIGINT,
    was_sold_out  BOOLEAN          NOT NULL DEFAULT false,
    generation    BIGINT           NOT NULL DEFAULT 1,
    last_ticket   BIGINT           NOT NULL DEFAULT 0,
    served_through BIGINT          NOT NULL DEFAULT 0,
    served        BIGINT           NOT NULL DEFAULT 0,
    waiting       BIGINT           NOT NULL DEFAULT 0,
    due_at        BIGINT,
    decided_at    BIGINT           NOT NULL,
    created_at    BIGINT           NOT NULL,
    opened_at     BIGINT,
    sold_out_at   BIGINT,
    closed_at     BIGINT,
    retired_at    BIGINT,
    forgotten_at  BIGINT,
    has_line      BOOLEAN          GENERATED ALWAYS AS (waiting > 0) STORED,
    CONSTRAINT p1_never_more CHECK (in_force >= 0 AND (quantity IS NULL OR in_force <= quantity)),
    CONSTRAINT p4_every_number CHECK (issued <= last_number AND (gate <> 'ledger' OR last_number <= position)),
    CONSTRAINT p9_a_place_is_kept CHECK (served >= 0 AND waiting >= 0 AND served + waiting <= last_ticket AND served_through <= last_ticket)
)
-- Each batch of claims writes a new version of its campaign's row. No index has a column that claims write, and each page
-- has room: so a version needs no entry in an index (HOT), and the next reader removes old ones. While another transaction
-- stays open, they stay too. When it has ended, vacuum comes within autovacuum_naptime, and does not pause.
WITH (fillfactor = 20, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500, autovacuum_vacuum_cost_delay = 0);

-- Finds the campaigns with people in line.
CREATE INDEX campaigns_with_line ON campaigns (gate, id) WHERE has_line;

-- Finds the campaigns that a gate knows, however many it has forgotten.
CREATE INDEX campaigns_at_gate ON campaigns (gate, id) WHERE forgotten_at IS NULL;

CREATE TABLE coupons (
    campaign_id   TEXT COLLATE "C" NOT NULL,
    number        BIGINT           NOT NULL CHECK (number > 0),
    user_id       TEXT COLLATE "C" NOT NULL,
    code          TEXT COLLATE "C" NOT NULL,
    terms_version BIGINT           NOT NULL,
    issued_at     BIGINT           NOT NULL,
    recorded_at   BIGINT           NOT NULL,
    position      BIGINT           NOT NULL,
    voided_at     BIGINT,
    void_reason   TEXT,
    generation    BIGINT,
    ticket        BIGINT,
    direct        BOOLEAN          NOT NULL DEFAULT false,
    PRIMARY KEY (campaign_id, number)          -- P4: a number names one coupon
);

-- P3: a user holds one coupon in force. The user comes first, so that the index also serves the wallet.
CREATE UNIQUE INDEX coupons_p3_one_per_user ON coupons (user_id, campaign_id) WHERE voided_at IS NULL;

CREATE TABLE tickets (
    campaign_id   TEXT COLLATE "C" NOT NULL,
    generation    BIGINT           NOT NULL CHECK (generation > 0),
    ticket        BIGINT           NOT NULL CHECK (ticket > 0),
    user_id       TEXT COLLATE "C" NOT NULL,
    joined_at     BIGINT           NOT NULL,
    ended_at      BIGINT,
    outcome       TEXT             CHECK (outcome IN ('issued', 'already_issued', 'left')),
    PRIMARY KEY (campaign_id, generation, ticket), -- P9: a ticket belongs to one user
    CONSTRAINT p9_ended CHECK ((ended_at IS NULL) = (outcome IS NULL))
);

-- P9: a user waits once.
CREATE UNIQUE INDEX tickets_p9_one_per_user ON tickets (user_id, campaign_id, generation) WHERE ended_at IS NULL;

-- Finds the users who left, and those who already held a coupon when their turn came.
CREATE INDEX tickets_left ON tickets (user_id, campaign_id) WHERE outcome IN ('left', 'already_issued');

CREATE TABLE past_lines (
    campaign_id    TEXT COLLATE "C" NOT NULL,
    generation     BIGINT           NOT NULL CHECK (generation > 0),
    last_ticket    BIGINT           NOT NULL,
    served_through BIGINT           NOT NULL,
    served         BIGINT           NOT NULL,
    waiting        BIGINT           NOT NULL CHECK (waiting >= 0),
    reason         TEXT             NOT NULL CHECK (reason IN ('sold_out', 'closed', 'lost')),
    ended_at       BIGINT           NOT NULL,
    PRIMARY KEY (campaign_id, generation),
    CONSTRAINT p9_every_ticket CHECK ((last_ticket > 0 OR reason = 'lost') AND served >= 0 AND served + waiting <= last_ticket AND served_through <= last_ticket)
);

CREATE TABLE facts (
    campaign_id   TEXT COLLATE "C" NOT NULL,
    position      BIGINT           NOT NULL,
    count         BIGINT           NOT NULL CHECK (count > 0),
    kind          TEXT             NOT NULL CHECK (kind IN ('coupon.issued', 'coupon.voided')),
    number        BIGINT           NOT NULL,
    PRIMARY KEY (campaign_id, position)
);

CREATE TABLE changes (
    campaign_id   TEXT COLLATE "C" NOT NULL,
    version       BIGINT           NOT NULL CHECK (version > 0),
    kind          TEXT             NOT NULL CHECK (kind IN ('terms', 'pause', 'resume', 'close', 'void', 'rebuild', 'reconcile')),
    payload       TEXT             NOT NULL,
    changed_at    BIGINT           NOT NULL,
    refused       BOOLEAN          NOT NULL DEFAULT false,
    quantity      BIGINT,
    opens_at      BIGINT,
    closes_at     BIGINT,
    skipped       BIGINT  NOT NULL DEFAULT 0,
    PRIMARY KEY (campaign_id, version)
);

CREATE TABLE dead_letters (
    id            BIGINT           NOT NULL GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    campaign_id   TEXT COLLATE "C",
    number        BIGINT,
    user_id       TEXT COLLATE "C",
    source        TEXT COLLATE "C" NOT NULL,
    payload       TEXT             NOT NULL,
    cause         TEXT             NOT NULL,
    created_at    BIGINT           NOT NULL,
    resolved_at   BIGINT,
    resolved_by   TEXT             CHECK (resolved_by IN ('replayed', 'voided')),
    UNIQUE (source)
);
CREATE INDEX dead_letters_campaign ON dead_letters (campaign_id, number);

CREATE TABLE lost (
    campaign_id   TEXT COLLATE "C" NOT NULL,
    number        BIGINT           NOT NULL CHECK (number > 0),
    count         BIGINT           NOT NULL CHECK (count > 0),
    epoch         BIGINT           NOT NULL,
    PRIMARY KEY (campaign_id, number)
);

-- Finds the terms of a version, however many voids came after them.
CREATE INDEX changes_terms ON changes (campaign_id, version) WHERE kind IN ('terms', 'reconcile');

-- The lists of codes that other systems made. A reader sees the entries up to entries; an import writes above them.
CREATE TABLE code_lists (
    campaign_id   TEXT COLLATE "C" NOT NULL,
    prize_id      TEXT COLLATE "C" NOT NULL, -- empty for a campaign without prizes
    entries       BIGINT           NOT NULL DEFAULT 0 CHECK (entries >= 0),
    digest        BYTEA,
    attempt       BIGINT           NOT NULL DEFAULT 0,
    importing_at  BIGINT,
    PRIMARY KEY (campaign_id, prize_id)
);

CREATE TABLE code_entries (
    campaign_id   TEXT COLLATE "C" NOT NULL,
    prize_id      TEXT COLLATE "C" NOT NULL,
    entry         BIGINT           NOT NULL CHECK (entry > 0),
    sealed        BYTEA            NOT NULL,
    mac           BYTEA            NOT NULL,
    PRIMARY KEY (campaign_id, prize_id, entry) -- P11: an entry is one rank's
);

-- P11: a code is in one place of the ledger.
CREATE UNIQUE INDEX code_entries_p11_once ON code_entries (mac);

CREATE TABLE audit_log (
    id            BIGINT           NOT NULL GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at            BIGINT           NOT NULL,
    actor         TEXT             NOT NULL,
    action        TEXT             NOT NULL,
    campaign_id   TEXT COLLATE "C",
    user_id       TEXT COLLATE "C",
    number        BIGINT,
    detail        TEXT             NOT NULL
);
CREATE INDEX audit_log_campaign ON audit_log (campaign_id, id);
-- Finds what was done to the campaign as a whole, however many of its coupons were voided.
CREATE INDEX audit_log_of_campaign ON audit_log (campaign_id, id) WHERE number IS NULL;
CREATE INDEX audit_log_user ON audit_log (user_id, id) WHERE user_id IS NOT NULL;

CREATE TABLE api_keys (
    id            TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    name          TEXT             NOT NULL,
    role          TEXT             NOT NULL CHECK (role IN ('admin', 'operator', 'support', 'viewer', 'service', 'shop')),
    hash          BYTEA            NOT NULL UNIQUE,
    created_at    BIGINT           NOT NULL,
    revoked_at    BIGINT,
    logged_out_at BIGINT
);

CREATE TABLE compatibility (
    id              BIGINT NOT NULL PRIMARY KEY CHECK (id = 1), -- one row
    compatible_from BIGINT NOT NULL
);
INSERT INTO compatibility (id, compatible_from) VALUES (1, 1);

CREATE TABLE schema_checksums (
    version       BIGINT NOT NULL PRIMARY KEY,
    checksum      TEXT   NOT NULL
);

CREATE TABLE proofs (
    campaign_id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    proved_by   TEXT             NOT NULL,
    began_at    BIGINT           NOT NULL,
    ended_at    BIGINT           NOT NULL,
    read_rows   BIGINT           NOT NULL,
    found       TEXT             NOT NULL
);

CREATE TABLE gate_runs (
    gate    TEXT COLLATE "C" NOT NULL,
    run     TEXT COLLATE "C" NOT NULL,
    durable BOOLEAN          NOT NULL,
    seen_at BIGINT           NOT NULL,
    PRIMARY KEY (gate, run)
);

CREATE TABLE journals (
    gate     TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    topic    TEXT COLLATE "C" NOT NULL,
    topic_id TEXT COLLATE "C" NOT NULL
);

CREATE TABLE identity (
    id            BIGINT           NOT NULL PRIMARY KEY CHECK (id = 1), -- one row
    ledger        TEXT COLLATE "C" NOT NULL
);

CREATE TABLE nodes (
    host          TEXT COLLATE "C" NOT NULL,
    listen        TEXT COLLATE "C" NOT NULL,
    role          TEXT             NOT NULL,
    version       TEXT             NOT NULL,
    started_at    BIGINT           NOT NULL,
    seen_at       BIGINT           NOT NULL,
    stopped_at    BIGINT,
    counts        TEXT             NOT NULL,
    PRIMARY KEY (host, listen)
);

CREATE TABLE followers (
    name          TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    attempt       BIGINT           NOT NULL,
    owner         TEXT             NOT NULL,
    leased_until  BIGINT           NOT NULL,
    target        TEXT             NOT NULL,
    ends          TEXT             NOT NULL
);

CREATE TABLE cursors (
    follower      TEXT COLLATE "C" NOT NULL REFERENCES followers (name),
    campaign_id   TEXT COLLATE "C" NOT NULL REFERENCES campaigns (id),
    position      BIGINT           NOT NULL CHECK (position >= 0),
    state         TEXT             NOT NULL CHECK (state IN ('', 'again', 'ahead')),
    PRIMARY KEY (follower, campaign_id)
);
