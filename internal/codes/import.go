package codes

import (
	"cmp"
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/campaign"
	"github.com/firstcome/firstcome/internal/sqldb"
)

// MaxImport is the most codes of one import.
const MaxImport = 1_000_000

const (
	// importPart is how many entries one transaction of an import writes: few enough that claims of other campaigns hardly wait for it.
	importPart = 500
	// importTime is how long an import may write nothing before another one may begin.
	importTime = 10 * time.Second
)

// Imported is the result of an import.
type Imported struct {
	Added   int64 // 0 if the list has these codes in this order already
	Entries int64 // of the list afterwards
}

// A Duplicate is a code of an import that cannot be added.
type Duplicate struct {
	Index int // in the import, from 0
	// The code is entry Entry of the list of Prize and Campaign already. Entry is 0 if an import that has not ended wrote it there.
	Campaign firstcome.CampaignID
	Prize    firstcome.PrizeID
	Entry    int64
}

// A DuplicateError has the codes of an import that the ledger has already. Nothing was added.
type DuplicateError struct{ Codes []Duplicate }

func (e *DuplicateError) Error() string {
	return fmt.Sprintf("the ledger has %d of these codes already", len(e.Codes))
}

// maxDuplicates is how many duplicates one error has.
const maxDuplicates = 100

// Import appends codes to the list of a prize: all of them, or none. prize is empty for a campaign without prizes. The codes differ from each other.
// If the list has them already, one behind the other, Import adds nothing: so an import whose answer was lost may be repeated. It returns a
// DuplicateError if the ledger has some of them elsewhere, ErrImportRunning if another import into the list is running, ErrNoList if the prize has
// no imported codes, and ErrClosed for a campaign that is over.
//
// An import writes its entries above those that the list's row counts, in parts. Its last transaction counts them. Each part compares the attempt, so
// of two imports one stops. The codes that a dead import left are freed by the next import. Each transaction may be repeated, because the outcome of its
// commit may be unknown.
func (cs *Lists) Import(ctx context.Context, actor string, id firstcome.CampaignID, prize firstcome.PrizeID, list []string) (Imported, error) {
	done, err := cs.importAll(ctx, actor, id, prize, list)
	return done, sqldb.Wrap(err, "import codes of %s", id)
}

func (cs *Lists) importAll(ctx context.Context, actor string, id firstcome.CampaignID, prize firstcome.PrizeID, list []string) (Imported, error) {
	i := cs.importing(id, prize, list)
	if err := i.begin(ctx); err != nil {
		return Imported{}, err
	}
	there, err := i.isThere(ctx)
	if err == nil && !there {
		err = i.append(ctx, list)
	}
	if err != nil {
		ctx := context.WithoutCancel(ctx)
		if twice := (*DuplicateError)(nil); errors.As(err, &twice) {
			return Imported{}, cmp.Or(cmp.Or(i.clear(ctx), i.end(ctx, actor, 0)), err)
		}
		_ = i.end(ctx, actor, 0) // if this fails, too, the next import waits for importTime. It frees the codes that are left here.
		return Imported{}, err
	}
	added := int64(len(list))
	if there {
		added = 0
	}
	return Imported{Added: added, Entries: i.entries + added}, i.end(ctx, actor, added)
}

// importing is one import.
type importing struct {
	*Lists
	id      firstcome.CampaignID
	prize   firstcome.PrizeID
	macs    [][]byte
	attempt int64
	entries int64 // of the list before
	digest  Digest
}

func (cs *Lists) importing(id firstcome.CampaignID, prize firstcome.PrizeID, list []string) *importing {
	i := &importing{Lists: cs, id: id, prize: prize, attempt: int64(binary.BigEndian.Uint64(noMAC()) >> 1)}
	for _, code := range list {
		i.macs = append(i.macs, cs.box.MAC(code))
	}
	return i
}

// begin begins the attempt, unless another import wrote lately, and frees the codes that a dead import left.
func (i *importing) begin(ctx context.Context) error {
	err := i.db.Repeat(ctx, func(t *sqldb.Tx) error {
		s, err := i.store.RowToChange(t, i.id)
		if err == nil && s.Secret != i.store.Fingerprint {
			err = firstcome.ErrGateMismatch
		}
		if err == nil && s.Over() {
			err = firstcome.ErrClosed
		}
		if err != nil {
			return err
		}
		terms, _, err := campaign.TermsInForce(t, s)
		if err != nil {
			return err
		}
		if !slices.ContainsFunc(terms.CodeLists(), func(l firstcome.CodeList) bool { return l.Prize == i.prize }) {
			return firstcome.ErrNoList
		}
		now, err := i.db.Now(t)
		if err != nil {
			return err
		}
		var digest []byte
		var attempt int64
		var running time.Time
		err = t.Row(`SELECT entries, digest, attempt, importing_at FROM code_lists WHERE campaign_id = ? AND prize_id = ?`+i.db.Dialect.ForUpdate, string(i.id), string(i.prize)).
			Scan(&i.entries, &digest, &attempt, sqldb.Time(&running))
		switch {
		case errors.Is(err, sql.ErrNoRows):
			_, err = t.Change(`INSERT INTO code_lists (campaign_id, prize_id, attempt, importing_at) VALUES (?, ?, ?, ?)`, string(i.id), string(i.prize), i.attempt, now.UnixMicro())
			return err
		case err != nil:
			return err
		case attempt != i.attempt && !running.IsZero() && now.Before(running.Add(importTime)) && !now.Before(running):
			return firstcome.ErrImportRunning
		}
		copy(i.digest[:], digest)
		_, err = t.Change(`UPDATE code_lists SET attempt = ?, importing_at = ? WHERE campaign_id = ? AND prize_id = ?`, i.attempt, now.UnixMicro(), string(i.id), string(i.prize))
		return err
	})
	if err != nil {
		return err
	}
	return i.clear(ctx)
}

// clear frees the codes of the entries above those that the list counts, in parts. Their rows stay, because a node may delete none: see append.
func (i *importing) clear(ctx context.Context) error {
	for from, last := i.entries+1, int64(math.MaxInt64); from <= last; from += importPart {
		err := i.step(ctx, func(t *sqldb.Tx) (err error) {
			last, err = i.last(t)
			for entry := from; err == nil && entry < from+importPart && entry <= last; entry++ {
				err = i.replace(t, entry, []byte{0}, noMAC())
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// last returns the last entry of the list that has a row, though it may not count.
func (i *importing) last(t *sqldb.Tx) (int64, error) {
	var last sql.NullInt64
	err := t.Row(`SELECT MAX(entry) FROM code_entries WHERE campaign_id = ? AND prize_id = ?`, string(i.id), string(i.prize)).Scan(&last)
	return last.Int64, err
}

// noMAC returns random bytes, which are the HMAC of no code.
func noMAC() []byte {
	mac := make([]byte, MACSize)
	_, _ = rand.Read(mac) // never fails
	return mac
}

// replace replaces an entry that does not count.
func (i *importing) replace(t *sqldb.Tx, entry int64, sealed, mac []byte) error {
	_, err := t.Change(`UPDATE code_entries SET sealed = ?, mac = ? WHERE campaign_id = ? AND prize_id = ? AND entry = ?`, sealed, mac, string(i.id), string(i.prize), entry)
	return err
}

// step does a transaction of the import. ErrImportRunning means that another import has begun.
func (i *importing) step(ctx context.Context, do func(*sqldb.Tx) error) error {
	return i.db.Repeat(ctx, func(t *sqldb.Tx) error {
		now, err := i.db.Now(t)
		if err != nil {
			return err
		}
		n, err := t.Change(`UPDATE code_lists SET importing_at = ? WHERE campaign_id = ? AND prize_id = ? AND attempt = ?`,
			now.UnixMicro(), string(i.id), string(i.prize), i.attempt)
		if err == nil && n == 0 {
			err = firstcome.ErrImportRunning
		}
		if err != nil {
			return err
		}
		return do(t)
	})
}

// isThere reports whether the list has the codes already, one behind the other.
func (i *importing) isThere(ctx context.Context) (bool, error) {
	if len(i.macs) == 0 {
		return true, nil
	}
	at, found, err := i.place(ctx, i.macs[0])
	if err != nil || !found || at.Campaign != i.id || at.Prize != i.prize || at.Entry > i.entries-int64(len(i.macs))+1 {
		return false, err
	}
	n := 0
	err = i.eachMAC(ctx, at.Entry, int64(len(i.macs)), func(mac []byte) error {
		if !slices.Equal(mac, i.macs[n]) {
			return errOther
		}
		n++
		return nil
	})
	if errors.Is(err, errOther) {
		return false, nil
	}
	return err == nil && n == len(i.macs), err
}

var errOther = errors.New("another code")

// place returns where a code is. Entry is 0 if only an import that has not ended wrote it.
func (i *importing) place(ctx context.Context, mac []byte) (at At, found bool, err error) {
	var counted int64
	err = i.db.Conclude.QueryRowContext(ctx, `SELECT e.campaign_id, e.prize_id, e.entry, l.entries FROM code_entries e
		JOIN code_lists l ON l.campaign_id = e.campaign_id AND l.prize_id = e.prize_id WHERE e.mac = ?`, mac).Scan(&at.Campaign, &at.Prize, &at.Entry, &counted)
	if errors.Is(err, sql.ErrNoRows) {
		return at, false, nil
	}
	if at.Entry > counted {
		at.Entry = 0
	}
	return at, err == nil, err
}

// eachMAC calls each with the HMACs of count entries from one on.
func (i *importing) eachMAC(ctx context.Context, from, count int64, each func(mac []byte) error) error {
	rows, err := i.db.Conclude.QueryContext(ctx, `SELECT mac FROM code_entries WHERE campaign_id = ? AND prize_id = ? AND entry >= ? AND entry < ? ORDER BY entry`,
		string(i.id), string(i.prize), from, from+count)
	return sqldb.EachRow(rows, err, func(take sqldb.Scan) error {
		mac, err := sqldb.One[[]byte](take)
		if err != nil {
			return err
		}
		return each(mac)
	})
}

// append writes the entries above those that the list counts.
func (i *importing) append(ctx context.Context, list []string) error {
	for from := 0; from < len(list); from += importPart {
		part := list[from:min(from+importPart, len(list))]
		err := i.step(ctx, func(t *sqldb.Tx) error {
			last, err := i.last(t)
			if err != nil {
				return err
			}
			var args []any
			fresh := 0
			for n, code := range part {
				at := At{Campaign: i.id, Prize: i.prize, Entry: i.entries + int64(from+n) + 1}
				sealed, mac := i.box.Seal(at, code), i.macs[from+n]
				if at.Entry <= last { // a dead import left its row, or this transaction is repeated
					if err := i.replace(t, at.Entry, sealed, mac); err != nil {
						return err
					}
					continue
				}
				args = append(args, string(i.id), string(i.prize), at.Entry, sealed, mac)
				fresh++
			}
			if fresh == 0 {
				return nil
			}
			_, err = t.Change(sqldb.Repeated(`INSERT INTO code_entries (campaign_id, prize_id, entry, sealed, mac) VALUES %s`, `(?, ?, ?, ?, ?)`, fresh), args...)
			return err
		})
		if i.db.Dialect.Classify(err) == sqldb.Refused {
			return cmp.Or(i.duplicates(ctx), err)
		}
		if err != nil {
			return err
		}
	}
	for _, mac := range i.macs {
		i.digest.Add(mac)
	}
	return nil
}

// duplicates returns a DuplicateError with the codes that the ledger has already, or nil if it has none.
func (i *importing) duplicates(ctx context.Context) error {
	var found DuplicateError
	for n, mac := range i.macs {
		at, there, err := i.place(ctx, mac)
		if err != nil {
			return err
		}
		if there && (at.Campaign != i.id || at.Prize != i.prize || at.Entry > 0) { // not what this import wrote
			found.Codes = append(found.Codes, Duplicate{n, at.Campaign, at.Prize, at.Entry})
		}
		if len(found.Codes) == maxDuplicates {
			break
		}
	}
	if len(found.Codes) == 0 {
		return nil
	}
	return &found
}

// end counts added entries, and ends the attempt.
func (i *importing) end(ctx context.Context, actor string, added int64) error {
	return i.step(ctx, func(t *sqldb.Tx) error {
		counted, err := t.Change(`UPDATE code_lists SET entries = ?, digest = ?, importing_at = NULL WHERE campaign_id = ? AND prize_id = ? AND entries = ?`,
			i.entries+added, i.digest[:], string(i.id), string(i.prize), i.entries)
		if err == nil && counted == 0 { // an earlier run has counted them
			_, err = t.Change(`UPDATE code_lists SET importing_at = NULL WHERE campaign_id = ? AND prize_id = ?`, string(i.id), string(i.prize))
			return err
		}
		if err != nil || added == 0 {
			return err
		}
		now, err := i.db.Now(t)
		if err != nil {
			return err
		}
		detail := map[string]any{"prize": i.prize, "added": added, "entries": i.entries + added}
		return campaign.AddLogJSON(t, now, actor, "codes.import", detail, campaign.Entry{Campaign: i.id})
	})
}
