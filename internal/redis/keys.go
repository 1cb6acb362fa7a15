package redis

import "github.com/firstcome/firstcome"

// The keys. All begin with firstcome:, so that one pattern of an access list
// covers them, and none ever expires. Those of a campaign have its id as hash tag: a
// cluster keeps them in one slot, where one script can use them all. Campaign ids
// are restricted to characters that mean nothing in a key; users are never in one.
const (
	// instanceKey is a string: the random name of this Redis as a gate, made once.
	instanceKey = "firstcome:instance"

	// layoutKey is a string: the newest layout that any campaign's keys may have: see layout.go.
	layoutKey = "firstcome:layout"

	// group is the recorders' consumer group of each journal.
	group = "recorders"
)

// settledChannel carries what recorders settled. Channels keep nothing; those of a
// Redis are not apart by database, so the instance is in their names, and the ledger too. On
// either a message of a later form begins with what no campaign id has, and is passed over here.
func (g *Gate) settledChannel() string { return "firstcome:settled:" + g.instance + ":" + g.ledger() }

// wakeChannel carries the ids of campaigns whose journal has something new.
func (g *Gate) wakeChannel() string { return "firstcome:wake:" + g.instance + ":" + g.ledger() }

// campaignKey is a hash: whose it is (instance, secret, marker), the layout of the keys, terms as far
// as they decide, version, counters and the gate's time. Made by change 1, until the campaign is retired.
func campaignKey(id firstcome.CampaignID) string { return "firstcome:{" + string(id) + "}:campaign" }

// holdersKey is a hash from user to coupon, of the coupons in force (see entry).
// Until the campaign is retired.
func holdersKey(id firstcome.CampaignID) string { return "firstcome:{" + string(id) + "}:holders" }

// journalKey is a stream, an entry for each decided batch that issued. An entry
// is deleted when the ledger has it; the stream goes when the campaign is retired.
func journalKey(id firstcome.CampaignID) string { return "firstcome:{" + string(id) + "}:journal" }

// unrecordedKey is a set of the numbers that are dead letters and no coupons in
// the ledger, as of letters_order of the campaign. Until the campaign is retired.
func unrecordedKey(id firstcome.CampaignID) string {
	return "firstcome:{" + string(id) + "}:unrecorded"
}

// keysOf returns a campaign's keys in the order in which the scripts take them.
func keysOf(id firstcome.CampaignID) []string {
	return []string{campaignKey(id), holdersKey(id), journalKey(id), unrecordedKey(id)}
}
