package campaign

import (
	"database/sql"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/sqldb"
)

// A CodeList is what the ledger has of a prize's list of imported codes.
type CodeList struct {
	Entries int64
	Digest  []byte // see codes.Digest; empty without entries
}

// CodeLists returns the lists of a campaign by prize. A list that was never imported is missing. query is a transaction's or a pool's.
func CodeLists(query func(string, ...any) (*sql.Rows, error), id firstcome.CampaignID) (map[firstcome.PrizeID]CodeList, error) {
	all := map[firstcome.PrizeID]CodeList{}
	rows, err := query(`SELECT prize_id, entries, digest FROM code_lists WHERE campaign_id = ?`, string(id))
	err = sqldb.EachRow(rows, err, func(take sqldb.Scan) error {
		var prize firstcome.PrizeID
		var l CodeList
		err := take(&prize, &l.Entries, &l.Digest)
		all[prize] = l
		return err
	})
	return all, err
}

// CodesMissing returns firstcome.ErrCodesMissing if a list of imported codes has fewer entries than terms of a campaign need. Entries are only added,
// so a list that is complete stays so.
func (r *Store) CodesMissing(query func(string, ...any) (*sql.Rows, error), id firstcome.CampaignID, terms *firstcome.Terms) error {
	needs := terms.CodeLists()
	if len(needs) == 0 {
		return nil
	}
	has, err := CodeLists(query, id)
	if err != nil {
		return err
	}
	var lacks []string
	for _, list := range needs {
		if missing := list.Needs - has[list.Prize].Entries; missing > 0 {
			of := "the campaign"
			if list.Prize != "" {
				of = "the prize " + string(list.Prize)
			}
			lacks = append(lacks, fmt.Sprintf("%s lacks %d of %d", of, missing, list.Needs))
		}
	}
	if len(lacks) == 0 {
		return nil
	}
	return fmt.Errorf("%w: %s", firstcome.ErrCodesMissing, strings.Join(lacks, ", "))
}

// A NotedList is what a resume notes of a list, so that a restored ledger's list can be compared.
type NotedList struct {
	Prize   firstcome.PrizeID `json:"prize"`
	Entries int64             `json:"entries"`
	Digest  string            `json:"digest"` // in hexadecimal digits
}

// NotedLists is the payload of a resume.
type NotedLists struct {
	Lists []NotedList `json:"lists,omitempty"`
}

// NoteCodes returns the payload of a campaign's resume. firstcome.ErrCodesMissing means that it must stay paused.
func (r *Store) NoteCodes(t *sqldb.Tx, s Row) (payload string, err error) {
	if !s.Burns {
		return Nothing, nil
	}
	terms, _, err := TermsInForce(t, s)
	if err == nil {
		err = r.CodesMissing(t.Query, s.ID, &terms)
	}
	if err != nil {
		return "", err
	}
	return NotedCodes(t, s.ID, &terms)
}

// NotedCodes returns what the ledger has of a campaign's lists, as a gate keeps it.
func NotedCodes(t *sqldb.Tx, id firstcome.CampaignID, terms *firstcome.Terms) (string, error) {
	has, err := CodeLists(t.Query, id)
	var noted NotedLists
	for _, list := range terms.CodeLists() {
		l := has[list.Prize]
		noted.Lists = append(noted.Lists, NotedList{list.Prize, l.Entries, hex.EncodeToString(l.Digest)})
	}
	return JSON(noted), err
}
