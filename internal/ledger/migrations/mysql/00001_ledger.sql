-- +goose NO TRANSACTION
-- +goose Up

-- A statement that makes a table cannot be rolled back here: each may run again, so
-- that a migration which was killed goes on.

-- Instants are microseconds since 1970-01-01T00:00:00Z; durations are microseconds.
-- Ids are bytes, so that no collation makes two of them equal.
-- What P1 to P4 promise, the constraints repeat: if a gate is ever wrong, the ledger refuses.

CREATE TABLE IF NOT EXISTS campaigns (
    id            VARBINARY(64)  NOT NULL PRIMARY KEY,
    quantity      BIGINT,                               -- NULL: unlimited
    opens_at      BIGINT,
    closes_at     BIGINT,
    paused        BOOLEAN        NOT NULL DEFAULT 0,
    closed        BOOLEAN        NOT NULL DEFAULT 0,
    version       BIGINT         NOT NULL,              -- of the last change
    terms_version BIGINT         NOT NULL,              -- of the last change of terms
    applied       BIGINT         NOT NULL,              -- the last change that the gate has applied or refused
    gate          VARBINARY(128) NOT NULL,              -- what decides: ledger, or redis:INSTANCE
    epoch         BIGINT         NOT NULL,              -- of the gate: what an earlier one issued and the ledger has not seen is refused
    secret        VARBINARY(64)  NOT NULL,              -- fingerprint of the code secret
    in_force      BIGINT         NOT NULL DEFAULT 0,
    issued        BIGINT         NOT NULL DEFAULT 0,    -- coupons ever issued, voided ones too
    last_number   BIGINT         NOT NULL DEFAULT 0,    -- the highest that the ledger has
    settled       BIGINT         NOT NULL DEFAULT 0,    -- every number up to it is a coupon, a dead letter or lost; with the gate ledger it stays 0
    letters_order BIGINT         NOT NULL DEFAULT 0,    -- raised by what changes which numbers are dead letters and no coupons
    position      BIGINT         NOT NULL DEFAULT 0,    -- of the last fact
    held          BIGINT         NOT NULL DEFAULT 0,    -- coupons of stock that came back, which nobody is issued before held_until;
    held_until    BIGINT         NOT NULL DEFAULT 0,    -- where several nodes share the ledger they must forget refusals first
    was_opens_at  BIGINT,                               -- so long a window that was widened stays as narrow as it was
    was_closes_at BIGINT,
    decided_at    BIGINT         NOT NULL,              -- the gate's clock does not go back behind this
    created_at    BIGINT         NOT NULL,
    opened_at     BIGINT,                               -- the first decision while it was open, by the gate's clock; of another gate than the ledger: NULL until it is retired
    sold_out_at   BIGINT,                               -- since when every coupon is in force; NULL: they are not; else like opened_at
    closed_at     BIGINT,                               -- when an operator closed it
    retired_at    BIGINT,                               -- over for long: the ledger answers instead of the gate
    forgotten_at  BIGINT,                               -- the gate has nothing of it any more
    -- Finds the campaigns that a gate knows, whatever the number of those that it has forgotten.
    INDEX campaigns_at_gate (gate, forgotten_at, id),
    CONSTRAINT p1_never_more CHECK (in_force >= 0 AND (quantity IS NULL OR in_force <= quantity)),
    CONSTRAINT p4_every_number CHECK (issued <= last_number AND (gate <> 'ledger' OR last_number <= position))
) ENGINE = InnoDB, CHARACTER SET = utf8mb4, COLLATE = utf8mb4_bin;

CREATE TABLE IF NOT EXISTS coupons (
    campaign_id   VARBINARY(64)  NOT NULL,
    number        BIGINT         NOT NULL CHECK (number > 0),
    user_id       VARBINARY(128) NOT NULL,
    code          VARBINARY(32)  NOT NULL,
    terms_version BIGINT         NOT NULL,              -- the change that holds the coupon's terms
    issued_at     BIGINT         NOT NULL,
    recorded_at   BIGINT         NOT NULL,
    position      BIGINT         NOT NULL,              -- of the fact that it was issued
    voided_at     BIGINT,
    void_reason   MEDIUMTEXT,
    -- Who holds the coupon: a unique index takes no condition here, and no notice of NULL.
    holder        VARBINARY(128) AS (CASE WHEN voided_at IS NULL THEN user_id END) VIRTUAL,
    PRIMARY KEY (campaign_id, number),         -- P4: a number names one coupon
    -- P3: one coupon in force a user. The user stands first so that it serves the wallet too.
    UNIQUE INDEX coupons_p3_one_per_user (holder, campaign_id)
) ENGINE = InnoDB, CHARACTER SET = utf8mb4, COLLATE = utf8mb4_bin;

-- Runs of facts: count facts from position on, about the numbers from number on.
-- The facts behind the last run, up to the campaign's position, are the latest
-- issues, up to its last_number: their run is written with the next void.
CREATE TABLE IF NOT EXISTS facts (
    campaign_id   VARBINARY(64)  NOT NULL,
    position      BIGINT         NOT NULL,
    count         BIGINT         NOT NULL CHECK (count > 0),
    kind          VARBINARY(16)  NOT NULL CHECK (kind IN ('coupon.issued', 'coupon.voided')),
    number        BIGINT         NOT NULL,
    PRIMARY KEY (campaign_id, position)
) ENGINE = InnoDB, CHARACTER SET = utf8mb4, COLLATE = utf8mb4_bin;

-- The numbered changes of a campaign, from 1, without a gap.
CREATE TABLE IF NOT EXISTS changes (
    campaign_id   VARBINARY(64)  NOT NULL,
    version       BIGINT         NOT NULL CHECK (version > 0),
    kind          VARBINARY(16)  NOT NULL CHECK (kind IN ('terms', 'pause', 'resume', 'close', 'void')),
    payload       MEDIUMTEXT     NOT NULL,              -- JSON: the terms, or the number voided and its user
    changed_at    BIGINT         NOT NULL,
    refused       BOOLEAN        NOT NULL DEFAULT 0,    -- the gate refused it: the number is used and nothing changed
    PRIMARY KEY (campaign_id, version),
    -- Finds the terms of a version behind any number of voids.
    INDEX changes_terms (campaign_id, kind, version)
) ENGINE = InnoDB, CHARACTER SET = utf8mb4, COLLATE = utf8mb4_bin;

-- What the ledger will never take, until an operator replays or voids it.
CREATE TABLE IF NOT EXISTS dead_letters (
    id            BIGINT         NOT NULL AUTO_INCREMENT PRIMARY KEY,
    campaign_id   VARBINARY(64),                        -- NULL: the entry does not say
    number        BIGINT,                               -- NULL: the entry could not be read
    user_id       VARBINARY(128),
    source        VARBINARY(255) NOT NULL,              -- names the entry: the same one given again is the same letter
    payload       MEDIUMTEXT     NOT NULL,              -- the coupon as JSON, or the entry as it was found
    cause         MEDIUMTEXT     NOT NULL,
    created_at    BIGINT         NOT NULL,
    settled_at    BIGINT,                               -- NULL: open
    settled_by    VARBINARY(16)  CHECK (settled_by IN ('replayed', 'voided')),
    letters_order BIGINT         NOT NULL DEFAULT 0,    -- the campaign's, when it last changed whether the number is a coupon
    UNIQUE (source),
    INDEX dead_letters_campaign (campaign_id, number),
    INDEX dead_letters_order (campaign_id, letters_order) -- finds what changed since
) ENGINE = InnoDB, CHARACTER SET = utf8mb4, COLLATE = utf8mb4_bin;

-- Numbers that were skipped because the gate lost its memory: none was answered as recorded.
CREATE TABLE IF NOT EXISTS lost (
    campaign_id   VARBINARY(64)  NOT NULL,
    number        BIGINT         NOT NULL CHECK (number > 0), -- the first of the range
    count         BIGINT         NOT NULL CHECK (count > 0),
    epoch         BIGINT         NOT NULL,              -- the epoch that began behind it
    PRIMARY KEY (campaign_id, number)
) ENGINE = InnoDB, CHARACTER SET = utf8mb4, COLLATE = utf8mb4_bin;

CREATE TABLE IF NOT EXISTS audit_log (
    id            BIGINT         NOT NULL AUTO_INCREMENT PRIMARY KEY,
    at            BIGINT         NOT NULL,
    actor         MEDIUMTEXT     NOT NULL,
    action        VARBINARY(64)  NOT NULL,
    campaign_id   VARBINARY(64),
    user_id       VARBINARY(128),
    number        BIGINT,
    detail        MEDIUMTEXT     NOT NULL,              -- JSON
    INDEX audit_log_campaign (campaign_id, id),
    INDEX audit_log_user (user_id, id)
) ENGINE = InnoDB, CHARACTER SET = utf8mb4, COLLATE = utf8mb4_bin;

CREATE TABLE IF NOT EXISTS api_keys (
    id            VARBINARY(64)  NOT NULL PRIMARY KEY,
    name          MEDIUMTEXT     NOT NULL,
    role          VARBINARY(16)  NOT NULL CHECK (role IN ('admin', 'operator', 'support', 'viewer', 'service')),
    hash          VARBINARY(32)  NOT NULL UNIQUE,       -- SHA-256 of the key
    created_at    BIGINT         NOT NULL,
    revoked_at    BIGINT
) ENGINE = InnoDB, CHARACTER SET = utf8mb4, COLLATE = utf8mb4_bin;

-- Which binaries may serve: those that know the schema's version compatible_from. Only a
-- migration that takes something away from older ones raises it.
CREATE TABLE IF NOT EXISTS compatibility (
    id              BIGINT NOT NULL PRIMARY KEY CHECK (id = 1), -- one row
    compatible_from BIGINT NOT NULL
) ENGINE = InnoDB, CHARACTER SET = utf8mb4, COLLATE = utf8mb4_bin;
REPLACE INTO compatibility (id, compatible_from) VALUES (1, 1);

-- Which migrations made the tables, by the SHA-256 of their files. A migration of a release is never edited.
CREATE TABLE IF NOT EXISTS schema_checksums (
    version       BIGINT         NOT NULL PRIMARY KEY,
    checksum      VARCHAR(64)    NOT NULL
) ENGINE = InnoDB, CHARACTER SET = utf8mb4, COLLATE = utf8mb4_bin;

-- Which ledger this is, of all that there are: by it a gate tells ledgers apart. The first start
-- makes it up, and it goes into every copy.
CREATE TABLE IF NOT EXISTS identity (
    id            BIGINT         NOT NULL PRIMARY KEY CHECK (id = 1), -- one row
    ledger        VARBINARY(64)  NOT NULL
) ENGINE = InnoDB, CHARACTER SET = utf8mb4, COLLATE = utf8mb4_bin;
