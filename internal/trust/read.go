package trust

import (
	"errors"
	"fmt"
	"io"
	"os"
	"time"
)

const (
	// readTime is how long a file may take to be read: longer than a command behind a pipe takes to fetch a secret.
	readTime = 10 * time.Second
	// againTime is how long a file may take that is read again while a node serves: the node reads nothing else until then.
	againTime = time.Second
	// maxFile bounds a file in bytes. A machine's certificate authorities have a quarter of that.
	maxFile = 1 << 20
)

// ReadFile reads a file that a flag or a URL names. The file may be a pipe, as with <(…). If it has no end in time, because nobody writes to the pipe or
// the disk hangs, ReadFile gives up, and a goroutine waits until the read ends.
func ReadFile(name string) ([]byte, error) { return start(name).wait(readTime) }

// Again returns a function that reads a file as it is now. While an earlier read has no end, the function waits for that one, and begins no other.
func Again(name string) func() ([]byte, error) {
	var under *read // nil if none is under way
	return func() ([]byte, error) {
		if under == nil {
			under = start(name)
		}
		text, err := under.wait(againTime)
		if !errors.Is(err, errLate) {
			under = nil
		}
		return text, err
	}
}

// errLate means that a file had no end in time.
var errLate = errors.New("if it is a pipe, something must write to it and close it; if it is on a network, look whether its server answers")

// A read is a read of a file that is under way.
type read struct {
	name  string
	ended chan struct{}
	text  []byte
	err   error
}

func start(name string) *read {
	r := &read{name: name, ended: make(chan struct{})}
	go func() {
		r.text, r.err = readAll(name)
		close(r.ended)
	}()
	return r
}

// wait returns the content, or errLate if there is none in time.
func (r *read) wait(limit time.Duration) ([]byte, error) {
	late := time.NewTimer(limit)
	defer late.Stop()
	select {
	case <-r.ended:
		return r.text, r.err
	case <-late.C:
		return nil, fmt.Errorf("%s could not be read within %v: %w", r.name, limit, errLate)
	}
}

func readAll(name string) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err == nil && len(text) > maxFile {
		err = fmt.Errorf("%s has more than %d bytes: is it the file that was meant?", name, maxFile)
	}
	return text, err
}
