package auth

import "sync"

// A Room bounds how many operations run at once, for each key and in all. A key is an API key, a user or an address.
type Room struct {
	// Each is the limit for one key, and All the limit for all of them; 0 means no limit.
	Each, All int

	mu    sync.Mutex // guards what follows
	taken map[string]int
	all   int
}

// Enter takes a place for a key, or returns false. Leave gives it back.
func (r *Room) Enter(key string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.All > 0 && r.all >= r.All || r.Each > 0 && r.taken[key] >= r.Each {
		return false
	}
	if r.taken == nil {
		r.taken = map[string]int{}
	}
	r.taken[key]++
	r.all++
	return true
}

// Leave gives a key's place back.
func (r *Room) Leave(key string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all--
	if r.taken[key]--; r.taken[key] == 0 {
		delete(r.taken, key)
	}
}
