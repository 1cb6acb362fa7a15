package console

import (
	"errors"
	"sync"
)

const (
	// seatsOfKey is how many pages one key reads at once, and how many streams, exports and rebuilds: the screens of one desk, twice.
	seatsOfKey = 8
	// mostSeats is how many all keys do. It is half of the connections that the console has of its own.
	mostSeats = 128
)

// seats bound what the console does at once, for each key and in all. The zero seats are free.
type seats struct {
	mu    sync.Mutex // guards what follows
	taken map[string]int
	all   int
}

// errSeats means that a key or the console does as much as it may.
var errSeats = errors.New("too much is read at once")

// take takes a seat for a key, or returns errSeats.
func (s *seats) take(key string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all == mostSeats || s.taken[key] == seatsOfKey {
		return errSeats
	}
	if s.taken == nil {
		s.taken = map[string]int{}
	}
	s.taken[key]++
	s.all++
	return nil
}

// leave gives the seat back.
func (s *seats) leave(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all--
	if s.taken[key]--; s.taken[key] == 0 {
		delete(s.taken, key)
	}
}
