-- +goose Up

-- Instants are microseconds since 1970-01-01T00:00:00Z; durations are microseconds.
-- Ids are compared and sorted byte by byte: COLLATE "C".
-- What P1 to P4 promise, the constraints repeat: if a gate is ever wrong, the ledger refuses.

CREATE TABLE campaigns (
    id            TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    quantity      BIGINT,                                 -- NULL: unlimited
    opens_at      BIGINT,
    closes_at     BIGINT,
    paused        BOOLEAN          NOT NULL DEFAULT false,
    closed        BOOLEAN          NOT NULL DEFAULT false,
    version       BIGINT           NOT NULL,              -- of the last change
    terms_version BIGINT           NOT NULL,              -- of the last change of terms
    applied       BIGINT           NOT NULL,              -- the last change that the gate has applied or refused
    gate          TEXT COLLATE "C" NOT NULL,              -- what decides: ledger, or redis:INSTANCE
    epoch         BIGINT           NOT NULL,              -- of the gate: what an earlier one issued and the ledger has not seen is refused
    secret        TEXT             NOT NULL,              -- fingerprint of the code secret
    in_force      BIGINT           NOT NULL DEFAULT 0,
    issued        BIGINT           NOT NULL DEFAULT 0,    -- coupons ever issued, voided ones too
    last_number   BIGINT           NOT NULL DEFAULT 0,    -- the highest that the ledger has
    settled       BIGINT           NOT NULL DEFAULT 0,    -- every number up to it is a coupon, a dead letter or lost; with the gate ledger it stays 0
    letters_order BIGINT           NOT NULL DEFAULT 0,    -- raised by what changes which numbers are dead letters and no coupons
    position      BIGINT           NOT NULL DEFAULT 0,    -- of the last fact
    held          BIGINT           NOT NULL DEFAULT 0,    -- coupons of stock that came back, which nobody is issued before held_until;
    held_until    BIGINT           NOT NULL DEFAULT 0,    -- where several nodes share the ledger they must forget refusals first
    was_opens_at  BIGINT,                                 -- so long a window that was widened stays as narrow as it was
    was_closes_at BIGINT,
    decided_at    BIGINT           NOT NULL,              -- the gate's clock does not go back behind this
    created_at    BIGINT           NOT NULL,
    opened_at     BIGINT,                                 -- the first decision while it was open, by the gate's clock; of another gate than the ledger: NULL until it is retired
    sold_out_at   BIGINT,                                 -- since when every coupon is in force; NULL: they are not; else like opened_at
    closed_at     BIGINT,                                 -- when an operator closed it
    retired_at    BIGINT,                                 -- over for long: the ledger answers instead of the gate
    forgotten_at  BIGINT,                                 -- the gate has nothing of it any more
    CONSTRAINT p1_never_more CHECK (in_force >= 0 AND (quantity IS NULL OR in_force <= quantity)),
    CONSTRAINT p4_every_number CHECK (issued <= last_number AND (gate <> 'ledger' OR last_number <= position))
);

-- Finds the campaigns that a gate knows, whatever the number of those that it has forgotten.
CREATE INDEX campaigns_at_gate ON campaigns (gate, id) WHERE forgotten_at IS NULL;

CREATE TABLE coupons (
    campaign_id   TEXT COLLATE "C" NOT NULL,
    number        BIGINT           NOT NULL CHECK (number > 0),
    user_id       TEXT COLLATE "C" NOT NULL,
    code          TEXT COLLATE "C" NOT NULL,
    terms_version BIGINT           NOT NULL,              -- the change that holds the coupon's terms
    issued_at     BIGINT           NOT NULL,
    recorded_at   BIGINT           NOT NULL,
    position      BIGINT           NOT NULL,              -- of the fact that it was issued
    voided_at     BIGINT,
    void_reason   TEXT,
    PRIMARY KEY (campaign_id, number)          -- P4: a number names one coupon
);

-- P3: one coupon in force a user. The user stands first so that it serves the wallet too.
CREATE UNIQUE INDEX coupons_p3_one_per_user ON coupons (user_id, campaign_id) WHERE voided_at IS NULL;

-- Runs of facts: count facts from position on, about the numbers from number on.
-- The facts behind the last run, up to the campaign's position, are the latest
-- issues, up to its last_number: their run is written with the next void.
CREATE TABLE facts (
    campaign_id   TEXT COLLATE "C" NOT NULL,
    position      BIGINT           NOT NULL,
    count         BIGINT           NOT NULL CHECK (count > 0),
    kind          TEXT             NOT NULL CHECK (kind IN ('coupon.issued', 'coupon.voided')),
    number        BIGINT           NOT NULL,
    PRIMARY KEY (campaign_id, position)
);

-- The numbered changes of a campaign, from 1, without a gap.
CREATE TABLE changes (
    campaign_id   TEXT COLLATE "C" NOT NULL,
    version       BIGINT           NOT NULL CHECK (version > 0),
    kind          TEXT             NOT NULL CHECK (kind IN ('terms', 'pause', 'resume', 'close', 'void')),
    payload       TEXT             NOT NULL,              -- JSON: the terms, or the number voided and its user
    changed_at    BIGINT           NOT NULL,
    refused       BOOLEAN          NOT NULL DEFAULT false, -- the gate refused it: the number is used and nothing changed
    PRIMARY KEY (campaign_id, version)
);

-- What the ledger will never take, until an operator replays or voids it.
CREATE TABLE dead_letters (
    id            BIGINT           NOT NULL GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    campaign_id   TEXT COLLATE "C",                       -- NULL: the entry does not say
    number        BIGINT,                                 -- NULL: the entry could not be read
    user_id       TEXT COLLATE "C",
    source        TEXT COLLATE "C" NOT NULL,              -- names the entry: the same one given again is the same letter
    payload       TEXT             NOT NULL,              -- the coupon as JSON, or the entry as it was found
    cause         TEXT             NOT NULL,
    created_at    BIGINT           NOT NULL,
    settled_at    BIGINT,                                 -- NULL: open
    settled_by    TEXT             CHECK (settled_by IN ('replayed', 'voided')),
    letters_order BIGINT           NOT NULL DEFAULT 0,    -- the campaign's, when it last changed whether the number is a coupon
    UNIQUE (source)
);
CREATE INDEX dead_letters_campaign ON dead_letters (campaign_id, number);
CREATE INDEX dead_letters_order ON dead_letters (campaign_id, letters_order); -- finds what changed since

-- Numbers that were skipped because the gate lost its memory: none was answered as recorded.
CREATE TABLE lost (
    campaign_id   TEXT COLLATE "C" NOT NULL,
    number        BIGINT           NOT NULL CHECK (number > 0), -- the first of the range
    count         BIGINT           NOT NULL CHECK (count > 0),
    epoch         BIGINT           NOT NULL,              -- the epoch that began behind it
    PRIMARY KEY (campaign_id, number)
);

-- Finds the terms of a version behind any number of voids.
CREATE INDEX changes_terms ON changes (campaign_id, version) WHERE kind = 'terms';

CREATE TABLE audit_log (
    id            BIGINT           NOT NULL GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at            BIGINT           NOT NULL,
    actor         TEXT             NOT NULL,
    action        TEXT             NOT NULL,
    campaign_id   TEXT COLLATE "C",
    user_id       TEXT COLLATE "C",
    number        BIGINT,
    detail        TEXT             NOT NULL               -- JSON
);
CREATE INDEX audit_log_campaign ON audit_log (campaign_id, id);
CREATE INDEX audit_log_user ON audit_log (user_id, id) WHERE user_id IS NOT NULL;

CREATE TABLE api_keys (
    id            TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    name          TEXT             NOT NULL,
    role          TEXT             NOT NULL CHECK (role IN ('admin', 'operator', 'support', 'viewer', 'service')),
    hash          BYTEA            NOT NULL UNIQUE,       -- SHA-256 of the key
    created_at    BIGINT           NOT NULL,
    revoked_at    BIGINT
);

-- Which binaries may serve: those that know the schema's version compatible_from. Only a
-- migration that takes something away from older ones raises it.
CREATE TABLE compatibility (
    id              BIGINT NOT NULL PRIMARY KEY CHECK (id = 1), -- one row
    compatible_from BIGINT NOT NULL
);
INSERT INTO compatibility (id, compatible_from) VALUES (1, 1);

-- Which migrations made the tables, by the SHA-256 of their files. A migration of a release is never edited.
CREATE TABLE schema_checksums (
    version       BIGINT NOT NULL PRIMARY KEY,
    checksum      TEXT   NOT NULL
);

-- Which ledger this is, of all that there are: by it a gate tells ledgers apart. The first start
-- makes it up, and it goes into every copy.
CREATE TABLE identity (
    id            BIGINT           NOT NULL PRIMARY KEY CHECK (id = 1), -- one row
    ledger        TEXT COLLATE "C" NOT NULL
);
