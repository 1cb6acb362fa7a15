-- +goose NO TRANSACTION
-- +goose Up

-- A statement that makes a table cannot be rolled back here. So each may run again, and a
-- migration that was killed goes on.

-- docs/tables.md says what each table and column means. A test compares it with this file.
-- Ids are bytes, so that no collation makes two of them equal.
-- The constraints repeat what P1 to P4 promise: if a gate is ever wrong, the ledger refuses.

CREATE TABLE IF NOT EXISTS campaigns (
    id            VARBINARY(64)  NOT NULL PRIMARY KEY,
    quantity      BIGINT,
    opens_at      BIGINT,
    closes_at     BIGINT,
    paused        BOOLEAN        NOT NULL DEFAULT 0,
    closed        BOOLEAN        NOT NULL DEFAULT 0,
    version       BIGINT         NOT NULL,
    terms_version BIGINT         NOT NULL,
    pace          BIGINT,
    waitlist      BOOLEAN        NOT NULL DEFAULT 0,
    burns         BOOLEAN        NOT NULL DEFAULT 0,
    applied       BIGINT         NOT NULL,
    gate          VARBINARY(128) NOT NULL,
    epoch         BIGINT         NOT NULL,
    ceiling       BIGINT         NOT NULL DEFAULT 0,
    attempt       BIGINT         NOT NULL DEFAULT 0,
    rebuilding_at BIGINT,
    secret        VARBINARY(64)  NOT NULL,
    in_force      BIGINT         NOT NULL DEFAULT 0,
    issued        BIGINT         NOT NULL DEFAULT 0,
    last_number   BIGINT         NOT NULL DEFAULT 0,
    drained_through BIGINT NOT NULL DEFAULT 0,
    dead_letters  BIGINT NOT NULL DEFAULT 0,
    position      BIGINT         NOT NULL DEFAULT 0,
    quarantined       BIGINT         NOT NULL DEFAULT 0,
    quarantined_until BIGINT         NOT NULL DEFAULT 0,
    was_opens_at  BIGINT,
    was_closes_at BIGINT,
    was_sold_out  BOOLEAN        NOT NULL DEFAULT 0,
    generation    BIGINT         NOT NULL DEFAULT 1,
    last_ticket   BIGINT         NOT NULL DEFAULT 0,
    served_through BIGINT        NOT NULL DEFAULT 0,
    served        BIGINT         NOT NULL DEFAULT 0,
    waiting       BIGINT         NOT NULL DEFAULT 0,
    due_at        BIGINT,
    decided_at    BIGINT         NOT NULL,
    created_at    BIGINT         NOT NULL,
    opened_at     BIGINT,
    sold_out_at   BIGINT,
    closed_at     BIGINT,
    retired_at    BIGINT,
    forgotten_at  BIGINT,
    -- Finds the campaigns that a gate knows, however many it has forgotten.
    INDEX campaigns_at_gate (gate, forgotten_at, id),
    -- Says whether people are in line, and finds the campaigns where they are.
    has_line      BOOLEAN AS (waiting > 0) VIRTUAL,
    INDEX campaigns_with_line (has_line, gate, id),
    CONSTRAINT p1_never_more CHECK (in_force >= 0 AND (quantity IS NULL OR in_force <= quantity)),
    CONSTRAINT p4_every_number CHECK (issued <= last_number AND (gate <> 'ledger' OR last_number <= position)),
    CONSTRAINT p9_a_place_is_kept CHECK (served >= 0 AND waiting >= 0 AND served + waiting <= last_ticket AND served_through <= last_ticket)
) ENGINE = InnoDB, CHARACTER SET = utf8mb4, COLLATE = utf8mb4_bin;

CREATE TABLE IF NOT EXISTS coupons (
    campaign_id   VARBINARY(64)  NOT NULL,
    number        BIGINT         NOT NULL CHECK (number > 0),
    user_id       VARBINARY(128) NOT NULL,
    code          VARBINARY(32)  NOT NULL,
    terms_version BIGINT         NOT NULL,
    issued_at     BIGINT         NOT NULL,
    recorded_at   BIGINT         NOT NULL,
    position      BIGINT         NOT NULL,
    voided_at     BIGINT,
    void_reason   MEDIUMTEXT,
    generation    BIGINT,
    ticket        BIGINT,
    direct        BOOLEAN        NOT NULL DEFAULT 0,
    -- The user who holds the coupon. A unique index takes no condition here, and ignores NULL.
    holder        VARBINARY(128) AS (CASE WHEN voided_at IS NULL THEN user_id END) VIRTUAL,
    PRIMARY KEY (campaign_id, number),         -- P4: a number names one coupon
    -- P3: a user holds one coupon in force. The user comes first, so that the index also serves the wallet.
    UNIQUE INDEX coupons_p3_one_per_user (holder, campaign_id)
) ENGINE = InnoDB, CHARACTER SET = utf8mb4, COLLATE = utf8mb4_bin;

CREATE TABLE IF NOT EXISTS tickets (
    campaign_id   VARBINARY(64)  NOT NULL,
    generation    BIGINT         NOT NULL CHECK (generation > 0),
    ticket        BIGINT         NOT NULL CHECK (ticket > 0),
    user_id       VARBINARY(128) NOT NULL,
    joined_at     BIGINT         NOT NULL,
    ended_at      BIGINT,
    outcome       VARBINARY(16)  CHECK (outcome IN ('issued', 'already_issued', 'left')),
    -- The user who waits, and the user who left or already held a coupon: see coupons.holder.
    waiter        VARBINARY(128) AS (CASE WHEN ended_at IS NULL THEN user_id END) VIRTUAL,
    leaver        VARBINARY(128) AS (CASE WHEN outcome IN ('left', 'already_issued') THEN user_id END) VIRTUAL,
    PRIMARY KEY (campaign_id, generation, ticket), -- P9: a ticket belongs to one user
    -- P9: a user waits once.
    UNIQUE INDEX tickets_p9_one_per_user (waiter, campaign_id, generation),
    INDEX tickets_left (leaver, campaign_id),
    CONSTRAINT p9_ended CHECK ((ended_at IS NULL) = (outcome IS NULL))
) ENGINE = InnoDB, CHARACTER SET = utf8mb4, COLLATE = utf8mb4_bin;

CREATE TABLE IF NOT EXISTS past_lines (
    campaign_id    VARBINARY(64)  NOT NULL,
    generation     BIGINT         NOT NULL CHECK (generation > 0),
    last_ticket    BIGINT         NOT NULL,
    served_through BIGINT         NOT NULL,
    served         BIGINT         NOT NULL,
    waiting        BIGINT         NOT NULL CHECK (waiting >= 0),
    reason         VARBINARY(16)  NOT NULL CHECK (reason IN ('sold_out', 'closed', 'lost')),
    ended_at       BIGINT         NOT NULL,
    PRIMARY KEY (campaign_id, generation),
    CONSTRAINT p9_every_ticket CHECK ((last_ticket > 0 OR reason = 'lost') AND served >= 0 AND served + waiting <= last_ticket AND served_through <= last_ticket)
) ENGINE = InnoDB, CHARACTER SET = utf8mb4, COLLATE = utf8mb4_bin;

CREATE TABLE IF NOT EXISTS facts (
    campaign_id   VARBINARY(64)  NOT NULL,
    position      BIGINT         NOT NULL,
    count         BIGINT         NOT NULL CHECK (count > 0),
    kind          VARBINARY(16)  NOT NULL CHECK (kind IN ('coupon.issued', 'coupon.voided')),
    number        BIGINT         NOT NULL,
    PRIMARY KEY (campaign_id, position)
) ENGINE = InnoDB, CHARACTER SET = utf8mb4, COLLATE = utf8mb4_bin;

CREATE TABLE IF NOT EXISTS changes (
    campaign_id   VARBINARY(64)  NOT NULL,
    version       BIGINT         NOT NULL CHECK (version > 0),
    kind          VARBINARY(16)  NOT NULL CHECK (kind IN ('terms', 'pause', 'resume', 'close', 'void', 'rebuild', 'reconcile')),
    payload       MEDIUMTEXT     NOT NULL,
    changed_at    BIGINT         NOT NULL,
    refused       BOOLEAN        NOT NULL DEFAULT 0,
    quantity      BIGINT,
    opens_at      BIGINT,
    closes_at     BIGINT,
    skipped       BIGINT  NOT NULL DEFAULT 0,
    PRIMARY KEY (campaign_id, version),
    -- Finds the terms of a version, however many voids came after them.
    INDEX changes_terms (campaign_id, kind, version)
) ENGINE = InnoDB, CHARACTER SET = utf8mb4, COLLATE = utf8mb4_bin;

CREATE TABLE IF NOT EXISTS dead_letters (
    id            BIGINT         NOT NULL AUTO_INCREMENT PRIMARY KEY,
    campaign_id   VARBINARY(64),
    number        BIGINT,
    user_id       VARBINARY(128),
    source        VARBINARY(255) NOT NULL,
    payload       MEDIUMTEXT     NOT NULL,
    cause         MEDIUMTEXT     NOT NULL,
    created_at    BIGINT         NOT NULL,
    resolved_at   BIGINT,
    resolved_by   VARBINARY(16)  CHECK (resolved_by IN ('replayed', 'voided')),
    UNIQUE (source),
    INDEX dead_letters_campaign (campaign_id, number)
) ENGINE = InnoDB, CHARACTER SET = utf8mb4, COLLATE = utf8mb4_bin;

CREATE TABLE IF NOT EXISTS lost (
    campaign_id   VARBINARY(64)  NOT NULL,
    number        BIGINT         NOT NULL CHECK (number > 0),
    count         BIGINT         NOT NULL CHECK (count > 0),
    epoch         BIGINT         NOT NULL,
    PRIMARY KEY (campaign_id, number)
) ENGINE = InnoDB, CHARACTER SET = utf8mb4, COLLATE = utf8mb4_bin;

-- The lists of codes that other systems made. A reader sees the entries up to entries; an import writes above them.
CREATE TABLE IF NOT EXISTS code_lists (
    campaign_id   VARBINARY(64)  NOT NULL,
    prize_id      VARBINARY(64)  NOT NULL, -- empty for a campaign without prizes
    entries       BIGINT         NOT NULL DEFAULT 0 CHECK (entries >= 0),
    digest        VARBINARY(32),
    attempt       BIGINT         NOT NULL DEFAULT 0,
    importing_at  BIGINT,
    PRIMARY KEY (campaign_id, prize_id)
) ENGINE = InnoDB, CHARACTER SET = utf8mb4, COLLATE = utf8mb4_bin;

CREATE TABLE IF NOT EXISTS code_entries (
    campaign_id   VARBINARY(64)  NOT NULL,
    prize_id      VARBINARY(64)  NOT NULL,
    entry         BIGINT         NOT NULL CHECK (entry > 0),
    sealed        VARBINARY(256) NOT NULL,
    mac           VARBINARY(32)  NOT NULL,
    PRIMARY KEY (campaign_id, prize_id, entry), -- P11: an entry is one rank's
    UNIQUE INDEX code_entries_p11_once (mac)    -- P11: a code is in one place of the ledger
) ENGINE = InnoDB, CHARACTER SET = utf8mb4, COLLATE = utf8mb4_bin;

CREATE TABLE IF NOT EXISTS audit_log (
    id            BIGINT         NOT NULL AUTO_INCREMENT PRIMARY KEY,
    at            BIGINT         NOT NULL,
    actor         MEDIUMTEXT     NOT NULL,
    action        VARBINARY(64)  NOT NULL,
    campaign_id   VARBINARY(64),
    user_id       VARBINARY(128),
    number        BIGINT,
    detail        MEDIUMTEXT     NOT NULL,
    INDEX audit_log_campaign (campaign_id, id),
    -- Finds what was done to the campaign as a whole, however many of its coupons were voided.
    INDEX audit_log_of_campaign (campaign_id, number, id),
    INDEX audit_log_user (user_id, id)
) ENGINE = InnoDB, CHARACTER SET = utf8mb4, COLLATE = utf8mb4_bin;

CREATE TABLE IF NOT EXISTS api_keys (
    id            VARBINARY(64)  NOT NULL PRIMARY KEY,
    name          MEDIUMTEXT     NOT NULL,
    role          VARBINARY(16)  NOT NULL CHECK (role IN ('admin', 'operator', 'support', 'viewer', 'service', 'shop')),
    hash          VARBINARY(32)  NOT NULL UNIQUE,
    created_at    BIGINT         NOT NULL,
    revoked_at    BIGINT,
    logged_out_at BIGINT
) ENGINE = InnoDB, CHARACTER SET = utf8mb4, COLLATE = utf8mb4_bin;

CREATE TABLE IF NOT EXISTS compatibility (
    id              BIGINT NOT NULL PRIMARY KEY CHECK (id = 1), -- one row
    compatible_from BIGINT NOT NULL
) ENGINE = InnoDB, CHARACTER SET = utf8mb4, COLLATE = utf8mb4_bin;
REPLACE INTO compatibility (id, compatible_from) VALUES (1, 1);

CREATE TABLE IF NOT EXISTS schema_checksums (
    version       BIGINT         NOT NULL PRIMARY KEY,
    checksum      VARCHAR(64)    NOT NULL
) ENGINE = InnoDB, CHARACTER SET = utf8mb4, COLLATE = utf8mb4_bin;

CREATE TABLE IF NOT EXISTS proofs (
    campaign_id VARBINARY(64)  NOT NULL PRIMARY KEY,
    proved_by   TEXT           NOT NULL,
    began_at    BIGINT         NOT NULL,
    ended_at    BIGINT         NOT NULL,
    read_rows   BIGINT         NOT NULL,
    found       MEDIUMTEXT     NOT NULL
) ENGINE = InnoDB, CHARACTER SET = utf8mb4, COLLATE = utf8mb4_bin;

CREATE TABLE IF NOT EXISTS gate_runs (
    gate    VARBINARY(128) NOT NULL,
    run     VARBINARY(64)  NOT NULL,
    durable BOOLEAN        NOT NULL,
    seen_at BIGINT         NOT NULL,
    PRIMARY KEY (gate, run)
) ENGINE = InnoDB;

CREATE TABLE IF NOT EXISTS journals (
    gate     VARBINARY(128) NOT NULL PRIMARY KEY,
    topic    VARBINARY(249) NOT NULL,
    topic_id VARBINARY(64)  NOT NULL
) ENGINE = InnoDB;

CREATE TABLE IF NOT EXISTS identity (
    id            BIGINT         NOT NULL PRIMARY KEY CHECK (id = 1), -- one row
    ledger        VARBINARY(64)  NOT NULL
) ENGINE = InnoDB, CHARACTER SET = utf8mb4, COLLATE = utf8mb4_bin;

CREATE TABLE IF NOT EXISTS nodes (
    host          VARBINARY(255) NOT NULL,
    listen        VARBINARY(255) NOT NULL,
    role          VARBINARY(16)  NOT NULL,
    version       VARBINARY(64)  NOT NULL,
    started_at    BIGINT         NOT NULL,
    seen_at       BIGINT         NOT NULL,
    stopped_at    BIGINT,
    counts        MEDIUMTEXT     NOT NULL,
    PRIMARY KEY (host, listen)
) ENGINE = InnoDB, CHARACTER SET = utf8mb4, COLLATE = utf8mb4_bin;

CREATE TABLE IF NOT EXISTS followers (
    name          VARBINARY(255) NOT NULL PRIMARY KEY,
    attempt       BIGINT         NOT NULL,
    owner         VARBINARY(255) NOT NULL,
    leased_until  BIGINT         NOT NULL,
    target        VARBINARY(64)  NOT NULL,
    ends          MEDIUMTEXT     NOT NULL
) ENGINE = InnoDB, CHARACTER SET = utf8mb4, COLLATE = utf8mb4_bin;

CREATE TABLE IF NOT EXISTS cursors (
    follower      VARBINARY(255) NOT NULL,
    campaign_id   VARBINARY(64)  NOT NULL,
    position      BIGINT         NOT NULL CHECK (position >= 0),
    state         VARBINARY(8)   NOT NULL CHECK (state IN ('', 'again', 'ahead')),
    PRIMARY KEY (follower, campaign_id)
) ENGINE = InnoDB;
