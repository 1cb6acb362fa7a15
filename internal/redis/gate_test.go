//go:build !check

package redis_test

import (
	"testing"
	"time"

	"github.com/firstcome/firstcome/internal/gate"
	"github.com/firstcome/firstcome/internal/redis"
	"github.com/firstcome/firstcome/test/conform"
	"github.com/firstcome/firstcome/test/services"
	"github.com/firstcome/firstcome/test/stage"
)

func TestF61ClaimsAndChangesThroughAnIssuerAreLinearizable(t *testing.T) {
	conform.Linearizable(t, func(t *testing.T) conform.Subject { return newSubject(t, services.Redis.Database(t), 1, false) })
}

func TestF61ClaimsAndChangesThroughThreeNodesAreLinearizable(t *testing.T) {
	conform.Linearizable(t, func(t *testing.T) conform.Subject {
		return cluster{newSubject(t, services.Redis.Database(t), 3, false)}
	})
}

// A subject is an operator of gates on one Redis.
type subject struct{ *stage.Operator }

func newSubject(t testing.TB, url string, nodes int, still bool) subject {
	s := subject{stage.NewOperator()}
	for range nodes {
		s.Gates = append(s.Gates, open(t, url, func(o *redis.Options) {
			if still {
				o.Clock = s.Now
			}
			o.Lined = s.Lined
		}))
	}
	return s
}

func (subject) Quarantine() time.Duration { return 250 * time.Millisecond }

// A cluster has an Issuer for each node.
type cluster struct{ subject }

func (c cluster) Nodes() []gate.Decider { return c.Telling() }
