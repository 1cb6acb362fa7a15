//go:build linux

package ledger_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/ledger"
	"github.com/firstcome/firstcome/test/stage"
)

// onSmallDisk runs a test in a child process that has a file system of its own,
// of one megabyte, in the directory given to it. No right is needed for that but
// to make a user namespace.
func onSmallDisk(t *testing.T, test func(t *testing.T, disk string)) {
	const child = "FIRSTCOME_TEST_SMALL_DISK"
	if disk := os.Getenv(child); disk != "" {
		if err := syscall.Mount("tmpfs", disk, "tmpfs", 0, "size=1m"); err != nil {
			t.Fatalf("mount a small disk: %v", err)
		}
		test(t, disk)
		return
	}
	cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
	cmd.Env = append(os.Environ(), child+"="+t.TempDir())
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWNS | syscall.CLONE_NEWUSER,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
		Pdeathsig:   syscall.SIGKILL,
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("on a small disk: %v\n%s", err, out)
	}
}

// issueUntilFull issues coupons in batches of 50 until an error, and returns the
// coupons answered and the batch that was not.
func issueUntilFull(t *testing.T, l *ledger.Ledger) (answered map[firstcome.UserID]int64, unknown []firstcome.UserID) {
	t.Helper()
	answered = map[firstcome.UserID]int64{}
	for n := 0; n < 100_000; n += 50 {
		users := make([]firstcome.UserID, 50)
		for k := range users {
			users[k] = firstcome.UserID(fmt.Sprintf("user-%d", n+k))
		}
		decisions, err := l.Gate.Claim(context.Background(), "c", users)
		if err != nil {
			return answered, users
		}
		for _, d := range decisions {
			answered[d.Coupon.User] = d.Coupon.Number
		}
	}
	t.Fatal("the disk never was full")
	return nil, nil
}

// sound checks that every answered coupon is there, once, and that the numbers
// have no gap.
func sound(t *testing.T, l *ledger.Ledger, answered map[firstcome.UserID]int64) {
	t.Helper()
	last, found := int64(0), 0
	err := l.Reads.Coupons(t.Context(), "c", ledger.Page{Voided: true}, func(c firstcome.Coupon) error {
		if last++; c.Number != last {
			return fmt.Errorf("number %d comes after %d", c.Number, last-1)
		}
		if number, ok := answered[c.User]; ok {
			found++
			if number != c.Number {
				return fmt.Errorf("%s was answered number %d and has %d", c.User, number, c.Number)
			}
		}
		return nil
	})
	if err != nil || found != len(answered) {
		t.Errorf("of %d coupons answered %d are in the ledger: %v", len(answered), found, err)
	}
	wrong, err := l.Verify(t.Context())
	if err != nil || len(wrong) > 0 {
		t.Errorf("the file is unsound: %v %v", wrong, err)
	}
}

func TestF55AFullDiskIsAnUnknownAnswerAndHeals(t *testing.T) {
	onSmallDisk(t, func(t *testing.T, disk string) {
		l := start(t, filepath.Join(disk, "firstcome.db"), nil)
		create(t, l, "c", firstcome.Unlimited)
		ballast := filepath.Join(disk, "ballast")
		stage.Must(t, os.WriteFile(ballast, make([]byte, 256<<10), 0o600))
		answered, unknown := issueUntilFull(t, l)
		for range 3 {
			_, err := l.Gate.Claim(t.Context(), "c", unknown)
			if err == nil || errors.Is(err, firstcome.ErrBusy) || errors.Is(err, firstcome.ErrNoCampaign) {
				t.Fatalf("a claim on a full disk got %v", err)
			}
		}
		sound(t, l, answered)
		stage.Must(t, os.Remove(ballast))
		claim(t, l.Gate, "c", unknown...)
		decisions, err := l.Gate.Claim(t.Context(), "c", unknown)
		if err != nil {
			t.Fatalf("it did not heal: %v", err)
		}
		for _, d := range decisions {
			if d.Outcome != firstcome.AlreadyIssued {
				t.Fatalf("the repeat got %v", d.Outcome)
			}
			answered[d.Coupon.User] = d.Coupon.Number
		}
		sound(t, l, answered)
	})
}

func TestF55AReadOnlyDiskIsAnUnknownAnswerAndHeals(t *testing.T) {
	onSmallDisk(t, func(t *testing.T, disk string) {
		path := filepath.Join(disk, "firstcome.db")
		l, stop := serve(t, path, ledger.Options{})
		create(t, l, "c", firstcome.Unlimited)
		claim(t, l.Gate, "c", "a")
		// A file that is open for writing hinders a file system from becoming
		// read-only, so the ledger is opened anew on one that is.
		stop()
		stage.Must(t, syscall.Mount("", disk, "", syscall.MS_REMOUNT|syscall.MS_RDONLY, ""))
		if _, err := ledger.Open(t.Context(), path, ledger.Options{Secret: stage.Secret()}); err == nil {
			t.Error("a ledger was opened on a read-only disk")
		}
		stage.Must(t, syscall.Mount("", disk, "", syscall.MS_REMOUNT, ""))
		l = start(t, path, nil)
		stage.Same(t, "afterwards", "already_issued:1 issued:2", claim(t, l.Gate, "c", "a", "b"))
	})
}
