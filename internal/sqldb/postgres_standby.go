package sqldb

import (
	"fmt"
	"strings"

	"github.com/firstcome/firstcome/internal/doctor"
)

// standby checks whether a coupon that was told would survive a failover to a synchronous standby, if one is named.
// Without the rights of pg_monitor, a user sees how many standbys are connected, and no more.
func (e *exam) standby() {
	const what = "synchronous standby"
	s, err := e.settings(`SELECT name, setting FROM pg_settings WHERE name IN ('synchronous_standby_names', 'synchronous_commit')
		UNION ALL SELECT 'connected', count(*)::text FROM pg_stat_replication
		UNION ALL SELECT 'read', count(sync_state)::text FROM pg_stat_replication
		UNION ALL SELECT 'confirming', count(*)::text FROM pg_stat_replication WHERE sync_state IN ('sync', 'quorum')`)
	if err != nil {
		e.unknown(what, err)
		return
	}
	names := s["synchronous_standby_names"]
	if names == "" {
		return
	}
	if level := s["synchronous_commit"]; level == "local" || level == "off" {
		e.Add(doctor.Fail, what, "ALTER ROLE NAME SET synchronous_commit = on", "no commit of this user waits for it (synchronous_commit = %s): a failover loses answered coupons", level)
		return
	}
	if s["connected"] != "0" && s["read"] == "0" {
		e.Add(doctor.Warn, what, "GRANT pg_monitor TO NAME", "whether one is connected is unknown: this user may not read pg_stat_replication")
		return
	}
	e.Hold(enough(names, s["confirming"]), doctor.Warn, what, "start it, or have it connect: until then nothing is committed, and claims are 503",
		"%s named by %s are connected", s["confirming"], names)
}

// enough reports whether so many standbys can confirm a commit. names is a value of synchronous_standby_names: FIRST 2
// (a, b, c), ANY 2 (a, b, c), 2 (a, b, c), or names alone, of which one is enough.
func enough(names, confirming string) bool {
	var least, has int
	count := strings.TrimSpace(names)
	for _, word := range []string{"FIRST", "ANY"} {
		if len(count) > len(word) && strings.EqualFold(count[:len(word)], word) {
			count = count[len(word):]
		}
	}
	if n, _ := fmt.Sscanf(count, "%d (", &least); n == 0 {
		least = 1
	}
	_, err := fmt.Sscan(confirming, &has)
	return err == nil && has >= least
}
