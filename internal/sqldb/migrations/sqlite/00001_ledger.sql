-- +goose Up

-- docs/tables.md says what each table and column means. A test compares it with this file.
-- The constraints repeat what P1 to P4 promise: if a gate is ever wrong, the ledger refuses.

CREATE TABLE campaigns (
    id            TEXT    NOT NULL PRIMARY KEY,
    quantity      INTEGER,
    opens_at      INTEGER,
    closes_at     INTEGER,
    paused        INTEGER NOT NULL DEFAULT 0,
    closed        INTEGER NOT NULL DEFAULT 0,
    version       INTEGER NOT NULL,
    terms_version INTEGER NOT NULL,
    pace          INTEGER,
    waitlist      INTEGER NOT NULL DEFAULT 0,
    burns         INTEGER NOT NULL DEFAULT 0,
    applied       INTEGER NOT NULL,
    gate          TEXT    NOT NULL,
    epoch         INTEGER NOT NULL,
    ceiling       INTEGER NOT NULL DEFAULT 0,
    attempt       INTEGER NOT NULL DEFAULT 0,
    rebuilding_at INTEGER,
    secret        TEXT    NOT NULL,
    in_force      INTEGER NOT NULL DEFAULT 0,
    issued        INTEGER NOT NULL DEFAULT 0,
    last_number   INTEGER NOT NULL DEFAULT 0,
    drained_through INTEGER NOT NULL DEFAULT 0,
    dead_letters  INTEGER NOT NULL DEFAULT 0,
    position      INTEGER NOT NULL DEFAULT 0,
    quarantined       INTEGER NOT NULL DEFAULT 0,
    quarantined_until INTEGER NOT NULL DEFAULT 0,
    was_opens_at  INTEGER,
    was_closes_at INTEGER,
    was_sold_out  INTEGER NOT NULL DEFAULT 0,
    generation    INTEGER NOT NULL DEFAULT 1,
    last_ticket   INTEGER NOT NULL DEFAULT 0,
    served_through INTEGER NOT NULL DEFAULT 0,
    served        INTEGER NOT NULL DEFAULT 0,
    waiting       INTEGER NOT NULL DEFAULT 0,
    due_at        INTEGER,
    decided_at    INTEGER NOT NULL,
    created_at    INTEGER NOT NULL,
    opened_at     INTEGER,
    sold_out_at   INTEGER,
    closed_at     INTEGER,
    retired_at    INTEGER,
    forgotten_at  INTEGER,
    CONSTRAINT p1_never_more CHECK (in_force >= 0 AND (quantity IS NULL OR in_force <= quantity)),
    CONSTRAINT p4_every_number CHECK (issued <= last_number AND (gate <> 'ledger' OR last_number <= position)),
    CONSTRAINT p9_a_place_is_kept CHECK (served >= 0 AND waiting >= 0 AND served + waiting <= last_ticket AND served_through <= last_ticket)
) STRICT, WITHOUT ROWID;

-- Finds the campaigns with people in line.
CREATE INDEX campaigns_with_line ON campaigns (gate, id) WHERE waiting > 0;

-- Finds the campaigns that a gate knows, however many it has forgotten.
CREATE INDEX campaigns_at_gate ON campaigns (gate, id) WHERE forgotten_at IS NULL;

CREATE TABLE coupons (
    campaign_id   TEXT    NOT NULL REFERENCES campaigns (id),
    number        INTEGER NOT NULL CHECK (number > 0),
    user_id       TEXT    NOT NULL,
    code          TEXT    NOT NULL,
    terms_version INTEGER NOT NULL,
    issued_at     INTEGER NOT NULL,
    recorded_at   INTEGER NOT NULL,
    position      INTEGER NOT NULL,
    voided_at     INTEGER,
    void_reason   TEXT,
    generation    INTEGER,
    ticket        INTEGER,
    direct        INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (campaign_id, number)          -- P4: a number names one coupon
) STRICT, WITHOUT ROWID;

-- P3: a user holds one coupon in force. The user comes first, so that the index also serves the wallet.
CREATE UNIQUE INDEX coupons_p3_one_per_user ON coupons (user_id, campaign_id) WHERE voided_at IS NULL;

-- Of outcome: a CHECK with an IN of more than two words would have SQLite build a table of them for each row.
CREATE TABLE tickets (
    campaign_id TEXT    NOT NULL REFERENCES campaigns (id),
    generation  INTEGER NOT NULL CHECK (generation > 0),
    ticket      INTEGER NOT NULL CHECK (ticket > 0),
    user_id     TEXT    NOT NULL,
    joined_at   INTEGER NOT NULL,
    ended_at    INTEGER,
    outcome     TEXT    CHECK (outcome = 'issued' OR outcome = 'already_issued' OR outcome = 'left'),
    PRIMARY KEY (campaign_id, generation, ticket), -- P9: a ticket belongs to one user
    CONSTRAINT p9_ended CHECK ((ended_at IS NULL) = (outcome IS NULL))
) STRICT, WITHOUT ROWID;

-- P9: a user waits once.
CREATE UNIQUE INDEX tickets_p9_one_per_user ON tickets (user_id, campaign_id, generation) WHERE ended_at IS NULL;

-- Finds the users who left, and those who already held a coupon when their turn came.
CREATE INDEX tickets_left ON tickets (user_id, campaign_id) WHERE outcome IN ('left', 'already_issued');

CREATE TABLE past_lines (
    campaign_id    TEXT    NOT NULL REFERENCES campaigns (id),
    generation     INTEGER NOT NULL CHECK (generation > 0),
    last_ticket    INTEGER NOT NULL,
    served_through INTEGER NOT NULL,
    served         INTEGER NOT NULL,
    waiting        INTEGER NOT NULL CHECK (waiting >= 0),
    reason         TEXT    NOT NULL CHECK (reason IN ('sold_out', 'closed', 'lost')),
    ended_at       INTEGER NOT NULL,
    PRIMARY KEY (campaign_id, generation),
    CONSTRAINT p9_every_ticket CHECK ((last_ticket > 0 OR reason = 'lost') AND served >= 0 AND served + waiting <= last_ticket AND served_through <= last_ticket)
) STRICT, WITHOUT ROWID;

CREATE TABLE facts (
    campaign_id TEXT    NOT NULL REFERENCES campaigns (id),
    position    INTEGER NOT NULL,
    count       INTEGER NOT NULL CHECK (count > 0),
    kind        TEXT    NOT NULL CHECK (kind IN ('coupon.issued', 'coupon.voided')),
    number      INTEGER NOT NULL,
    PRIMARY KEY (campaign_id, position)
) STRICT, WITHOUT ROWID;

CREATE TABLE changes (
    campaign_id TEXT    NOT NULL REFERENCES campaigns (id),
    version     INTEGER NOT NULL CHECK (version > 0),
    kind        TEXT    NOT NULL CHECK (kind IN ('terms', 'pause', 'resume', 'close', 'void', 'rebuild', 'reconcile')),
    payload     TEXT    NOT NULL,
    changed_at  INTEGER NOT NULL,
    refused     INTEGER NOT NULL DEFAULT 0,
    quantity      INTEGER,
    opens_at      INTEGER,
    closes_at     INTEGER,
    skipped       INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (campaign_id, version)
) STRICT, WITHOUT ROWID;

CREATE TABLE dead_letters (
    id          INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    campaign_id TEXT,
    number      INTEGER,
    user_id     TEXT,
    source      TEXT    NOT NULL,
    payload     TEXT    NOT NULL,
    cause       TEXT    NOT NULL,
    created_at  INTEGER NOT NULL,
    resolved_at INTEGER,
    resolved_by TEXT CHECK (resolved_by IN ('replayed', 'voided')),
    UNIQUE (source)
) STRICT;
CREATE INDEX dead_letters_campaign ON dead_letters (campaign_id, number);

CREATE TABLE lost (
    campaign_id TEXT    NOT NULL REFERENCES campaigns (id),
    number      INTEGER NOT NULL CHECK (number > 0),
    count       INTEGER NOT NULL CHECK (count > 0),
    epoch       INTEGER NOT NULL,
    PRIMARY KEY (campaign_id, number)
) STRICT, WITHOUT ROWID;

-- Finds the terms of a version, however many voids came after them.
CREATE INDEX changes_terms ON changes (campaign_id, version) WHERE kind IN ('terms', 'reconcile');

-- The lists of codes that other systems made. A reader sees the entries up to entries; an import writes above them.
CREATE TABLE code_lists (
    campaign_id  TEXT    NOT NULL REFERENCES campaigns (id),
    prize_id     TEXT    NOT NULL, -- empty for a campaign without prizes
    entries      INTEGER NOT NULL DEFAULT 0 CHECK (entries >= 0),
    digest       BLOB,
    attempt      INTEGER NOT NULL DEFAULT 0,
    importing_at INTEGER,
    PRIMARY KEY (campaign_id, prize_id)
) STRICT, WITHOUT ROWID;

CREATE TABLE code_entries (
    campaign_id TEXT    NOT NULL,
    prize_id    TEXT    NOT NULL,
    entry       INTEGER NOT NULL CHECK (entry > 0),
    sealed      BLOB    NOT NULL,
    mac         BLOB    NOT NULL,
    PRIMARY KEY (campaign_id, prize_id, entry), -- P11: an entry is one rank's
    FOREIGN KEY (campaign_id, prize_id) REFERENCES code_lists (campaign_id, prize_id)
) STRICT, WITHOUT ROWID;

-- P11: a code is in one place of the ledger.
CREATE UNIQUE INDEX code_entries_p11_once ON code_entries (mac);

CREATE TABLE audit_log (
    id          INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    at          INTEGER NOT NULL,
    actor       TEXT    NOT NULL,
    action      TEXT    NOT NULL,
    campaign_id TEXT,
    user_id     TEXT,
    number      INTEGER,
    detail      TEXT    NOT NULL
) STRICT;
CREATE INDEX audit_log_campaign ON audit_log (campaign_id, id);
-- Finds what was done to the campaign as a whole, however many of its coupons were voided.
CREATE INDEX audit_log_of_campaign ON audit_log (campaign_id, id) WHERE number IS NULL;
CREATE INDEX audit_log_user ON audit_log (user_id, id) WHERE user_id IS NOT NULL;

CREATE TABLE api_keys (
    id            TEXT    NOT NULL PRIMARY KEY,
    name          TEXT    NOT NULL,
    role          TEXT    NOT NULL CHECK (role IN ('admin', 'operator', 'support', 'viewer', 'service', 'shop')),
    hash          BLOB    NOT NULL UNIQUE,
    created_at    INTEGER NOT NULL,
    revoked_at    INTEGER,
    logged_out_at INTEGER
) STRICT, WITHOUT ROWID;

CREATE TABLE compatibility (
    id              INTEGER NOT NULL PRIMARY KEY CHECK (id = 1), -- one row
    compatible_from INTEGER NOT NULL
) STRICT;
INSERT INTO compatibility (id, compatible_from) VALUES (1, 1);

CREATE TABLE schema_checksums (
    version  INTEGER NOT NULL PRIMARY KEY,
    checksum TEXT    NOT NULL
) STRICT;

CREATE TABLE proofs (
    campaign_id TEXT    NOT NULL PRIMARY KEY,
    proved_by   TEXT    NOT NULL,
    began_at    INTEGER NOT NULL,
    ended_at    INTEGER NOT NULL,
    read_rows   INTEGER NOT NULL,
    found       TEXT    NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE gate_runs (
    gate    TEXT    NOT NULL,
    run     TEXT    NOT NULL,
    durable INTEGER NOT NULL,
    seen_at INTEGER NOT NULL,
    PRIMARY KEY (gate, run)
) STRICT, WITHOUT ROWID;

CREATE TABLE journals (
    gate     TEXT NOT NULL PRIMARY KEY,
    topic    TEXT NOT NULL,
    topic_id TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE identity (
    id     INTEGER NOT NULL PRIMARY KEY CHECK (id = 1), -- one row
    ledger TEXT    NOT NULL
) STRICT;

CREATE TABLE nodes (
    host       TEXT    NOT NULL,
    listen     TEXT    NOT NULL,
    role       TEXT    NOT NULL,
    version    TEXT    NOT NULL,
    started_at INTEGER NOT NULL,
    seen_at    INTEGER NOT NULL,
    stopped_at INTEGER,
    counts     TEXT    NOT NULL,
    PRIMARY KEY (host, listen)
) STRICT;

CREATE TABLE followers (
    name         TEXT    NOT NULL PRIMARY KEY,
    attempt      INTEGER NOT NULL,
    owner        TEXT    NOT NULL,
    leased_until INTEGER NOT NULL,
    target       TEXT    NOT NULL,
    ends         TEXT    NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE cursors (
    follower    TEXT    NOT NULL REFERENCES followers (name),
    campaign_id TEXT    NOT NULL REFERENCES campaigns (id),
    position    INTEGER NOT NULL CHECK (position >= 0),
    state       TEXT    NOT NULL CHECK (state IN ('', 'again', 'ahead')),
    PRIMARY KEY (follower, campaign_id)
) STRICT, WITHOUT ROWID;
