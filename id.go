package firstcome

import (
	"errors"
	"fmt"
	"unicode/utf8"
)

// A CampaignID is the id of a campaign: [a-z0-9][a-z0-9-]{0,62}.
type CampaignID string

// MaxCampaignID is the length of the longest campaign id, in bytes.
const MaxCampaignID = 63

// ParseCampaignID returns the campaign id s, or an error that describes the form of campaign ids.
func ParseCampaignID(s string) (CampaignID, error) {
	if !isID(s) {
		return "", errCampaignID
	}
	return CampaignID(s), nil
}

// idForm is the form of ids that operators choose.
const idForm = "is 1 to 63 lower-case letters, digits and hyphens, and does not begin with a hyphen"

var errCampaignID = errors.New("a campaign id " + idForm)

// isID reports whether s has the form of ids that operators choose.
func isID(s string) bool {
	if s == "" || len(s) > MaxCampaignID || s[0] == '-' {
		return false
	}
	for i := range len(s) {
		c := s[i]
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' {
			return false
		}
	}
	return true
}

// A UserID is the id of a user of the shop. Two ids are the same user only if every byte is the same: there is no case folding, trimming or
// normalisation.
type UserID string

// MaxUserID is the length of the longest user id, in bytes.
const MaxUserID = 128

// ParseUserID returns the user id s: 1 to 128 bytes of well-formed UTF-8 without control characters. "." and ".." are refused because a URL path
// cannot carry them.
func ParseUserID(s string) (UserID, error) {
	switch {
	case s == "":
		return "", errors.New("a user id has at least 1 byte")
	case len(s) > MaxUserID:
		return "", fmt.Errorf("a user id has at most %d bytes, this one has %d", MaxUserID, len(s))
	case s == "." || s == "..":
		return "", errors.New("a user id is not . or ..")
	case !utf8.ValidString(s):
		return "", errors.New("a user id is well-formed UTF-8")
	}
	for _, r := range s {
		if r < 0x20 || r >= 0x7f && r < 0xa0 {
			return "", fmt.Errorf("a user id has no control characters, this one has %U", r)
		}
	}
	return UserID(s), nil
}
