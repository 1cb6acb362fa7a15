package epoch

import (
	"github.com/firstcome/firstcome/internal/campaign"
	"github.com/firstcome/firstcome/internal/sqldb"
)

// loseNumbers writes the lost numbers: those up to through that are neither coupons nor dead letters. It returns
// how many there are. next is the epoch that begins.
func loseNumbers(t *sqldb.Tx, s campaign.Row, through, next int64) (lost int64, err error) {
	args := []any{string(s.ID), s.DrainedThrough, through}
	rows, err := t.Query(`SELECT number FROM coupons WHERE campaign_id = ? AND number > ? AND number <= ?
		UNION SELECT number FROM dead_letters WHERE campaign_id = ? AND number > ? AND number <= ? ORDER BY number`, append(args, args...)...)
	var gaps [][2]int64 // the first number and how many
	last := s.DrainedThrough
	gap := func(before int64) {
		if n := before - last - 1; n > 0 {
			gaps = append(gaps, [2]int64{last + 1, n})
			lost += n
		}
		last = before
	}
	err = sqldb.EachRow(rows, err, func(take sqldb.Scan) error {
		number, err := sqldb.One[int64](take)
		if err == nil {
			gap(number)
		}
		return err
	})
	if err != nil {
		return 0, err
	}
	gap(through + 1)
	for _, g := range gaps {
		if _, err := t.Change(`INSERT INTO lost (campaign_id, number, count, epoch) VALUES (?, ?, ?, ?)`, string(s.ID), g[0], g[1], next); err != nil {
			return 0, err
		}
	}
	return lost, nil
}
