package codes_test

import (
	"bytes"
	"errors"
	"testing"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/codes"
	"github.com/firstcome/firstcome/test/stage"
)

// TestASealedCodeOpensAtItsEntryOnly: not at another entry, prize or campaign, not with another secret, and not if a bit has changed.
func TestASealedCodeOpensAtItsEntryOnly(t *testing.T) {
	box, other := codes.NewBox(stage.Secret()), codes.NewBox(another(t))
	at := codes.At{Campaign: "c", Prize: "p", Entry: 7}
	sealed := box.Seal(at, "CODE-1")
	code, err := box.Open(at, sealed)
	stage.Must(t, err)
	stage.Same(t, "the code", "CODE-1", code)
	if bytes.Contains(sealed, []byte("CODE")) || bytes.Equal(sealed, box.Seal(at, "CODE-1")) {
		t.Error("the sealed code shows the code, or is sealed without a nonce")
	}
	flipped := bytes.Clone(sealed)
	flipped[len(flipped)-1] ^= 1
	for what, open := range map[string]func() (string, error){
		"another entry":    func() (string, error) { return box.Open(codes.At{Campaign: "c", Prize: "p", Entry: 8}, sealed) },
		"another prize":    func() (string, error) { return box.Open(codes.At{Campaign: "c", Prize: "q", Entry: 7}, sealed) },
		"another campaign": func() (string, error) { return box.Open(codes.At{Campaign: "d", Prize: "p", Entry: 7}, sealed) },
		"another secret":   func() (string, error) { return other.Open(at, sealed) },
		"a changed bit":    func() (string, error) { return box.Open(at, flipped) },
		"nothing":          func() (string, error) { return box.Open(at, nil) },
	} {
		if code, err := open(); !errors.Is(err, codes.ErrDamaged) || code != "" {
			t.Errorf("%s: %q, %v", what, code, err)
		}
	}
}

// TestAMACFindsACodeWhereverItIs, and follows from the secret.
func TestAMACFindsACodeWhereverItIs(t *testing.T) {
	box, other := codes.NewBox(stage.Secret()), codes.NewBox(another(t))
	if !bytes.Equal(box.MAC("A"), box.MAC("A")) || bytes.Equal(box.MAC("A"), box.MAC("a")) || bytes.Equal(box.MAC("A"), other.MAC("A")) || len(box.MAC("A")) != codes.MACSize {
		t.Error("the HMACs are wrong")
	}
	var one, two, swapped codes.Digest
	for _, code := range []string{"A", "B"} {
		one.Add(box.MAC(code))
		two.Add(box.MAC(code))
	}
	swapped.Add(box.MAC("B"))
	swapped.Add(box.MAC("A"))
	if one != two || one == swapped {
		t.Error("the digest does not depend on the codes and their order")
	}
}

// another returns another secret.
func another(t *testing.T) firstcome.Secret {
	s, err := firstcome.NewSecret([]byte("another secret of the tests, 32 bytes and more"))
	stage.Must(t, err)
	return s
}
