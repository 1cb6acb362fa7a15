package load

import (
	"cmp"
	"math/rand/v2"
	"slices"
)

// plan returns the users' indexes in the order in which they claim: the same for the same Users, Repeat, Shuffle, Seed and Concurrency. The first
// repeat of a user is near their first claim, so that the two overlap. Further repeats are alternately anywhere after it, or near it again.
func plan(c Options) []uint32 {
	random := rand.New(rand.NewPCG(c.Seed, 0x66697273))
	users := make([]uint32, c.Users)
	for n := range users {
		users[n] = uint32(n)
	}
	if c.Shuffle {
		random.Shuffle(c.Users, func(i, j int) { users[i], users[j] = users[j], users[i] })
	}
	if c.Repeat == 1 {
		return users
	}
	type claim struct {
		user uint32
		at   float64 // in first claims
	}
	claims := make([]claim, 0, c.Users*c.Repeat)
	for n, user := range users {
		first := float64(n)
		claims = append(claims, claim{user, first})
		for repeat := 1; repeat < c.Repeat; repeat++ {
			within := float64(min(c.Concurrency, c.Users-n))
			if repeat%2 == 0 {
				within = float64(c.Users - n)
			}
			claims = append(claims, claim{user, first + random.Float64()*within})
		}
	}
	slices.SortStableFunc(claims, func(x, y claim) int { return cmp.Compare(x.at, y.at) })
	order := make([]uint32, len(claims))
	for n, c := range claims {
		order[n] = c.user
	}
	return order
}
