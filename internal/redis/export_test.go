package redis

import "github.com/firstcome/firstcome"

// Keys returns the keys of the campaign with a marker, empty for none, in the order in which the scripts take them.
func Keys(id firstcome.CampaignID, marker string) []string {
	if marker == "" {
		marker = unmarked
	}
	return keysOf(id, marker).all()
}
