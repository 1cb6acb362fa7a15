//go:build !check

package redis_test

import (
	"errors"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/doctor"
	"github.com/firstcome/firstcome/internal/redis"
	"github.com/firstcome/firstcome/test/services"
	"github.com/firstcome/firstcome/test/stage"
)

// hardened starts a Redis with an access list, and returns it with the URL of the user firstcome.
func hardened(t *testing.T, defaultUser string) (server *services.Server, at string) {
	t.Helper()
	list := filepath.Join(t.TempDir(), "users.acl")
	lines := defaultUser + "\nuser firstcome on >" + services.Password + " " + redis.Rights + "\nuser operator on >" + services.Password + " ~* &* +@all\n"
	stage.Must(t, os.WriteFile(list, []byte(lines), 0o600))
	server = services.Redis.Server(t, "--aclfile", list)
	return server, as(t, server.URL(), "firstcome")
}

// as returns a URL that logs in as another user of an access list.
func as(t *testing.T, at, user string) string {
	t.Helper()
	u, err := url.Parse(at)
	stage.Must(t, err)
	u.User = url.UserPassword(user, services.Password)
	return u.String()
}

func TestARestartLosesNothingWithTheSafeLineOfTheDefaultUserAndEverythingWithoutIt(t *testing.T) {
	for line, kept := range map[string]bool{redis.SafeDefault: true, "user default off nopass ~firstcome:* +@all": true, "user default off": false} {
		t.Run(line, func(t *testing.T) {
			server, at := hardened(t, line)
			s := newShop(t, at, 100)
			s.issue(0, 10)
			before := s.state()

			grade := doctor.Fail
			if kept {
				grade = doctor.OK
			}
			examine(t, as(t, server.URL(), "operator")).Want(t, grade, "the user default")
			examine(t, at).Want(t, doctor.Warn, "the user default") // this user may not run ACL GETUSER

			stage.Must(t, server.Stop())
			stage.Must(t, server.Restart(t.Context()))
			awaitLoaded(t, at)
			after, err := open(t, at).State(t.Context(), "c")
			switch {
			case !kept && !errors.Is(err, firstcome.ErrNoCampaign):
				t.Errorf("this Redis loads what the user default may not write, so there is nothing to warn of: %+v, %v", after, err)
			case kept && (err != nil || after.InForce != before.InForce || after.LastNumber != before.LastNumber):
				t.Errorf("after the restart the campaign is %+v, %v, and was %+v", after, err, before)
			case kept:
				s := &shop{t: t, gate: open(t, at), client: connect(t, at)}
				stage.Must(t, s.gate.Trust(t.Context(), "c"))
				s.want(s.gate, crowd(9, 2), "already_issued:10", "issued:11")
			}
		})
	}
}

// TestWhatAUserDefaultThatIsSwitchedOffDoesDependsOnTheVersion: of Valkey, these are the first version of each series that loads the whole file
// whatever the user default may do, and the last version that does not. 9.1.1 and 9.1.2 were tried.
func TestWhatAUserDefaultThatIsSwitchedOffDoesDependsOnTheVersion(t *testing.T) {
	for version, grade := range map[string]doctor.Grade{
		"redis 7.0.15": doctor.Fail, "redis 8.4.9": doctor.Fail, "redis 8.6.1": doctor.Warn, "redis 9.0.0": doctor.Warn,
		"valkey 7.2.14": doctor.Fail, "valkey 7.2.15": doctor.Warn, "valkey 8.0.10": doctor.Fail, "valkey 8.0.11": doctor.Warn,
		"valkey 8.1.9": doctor.Fail, "valkey 8.1.10": doctor.Warn, "valkey 9.0.5": doctor.Fail, "valkey 9.0.7": doctor.Warn,
		"valkey 9.1.1": doctor.Fail, "valkey 9.1.2": doctor.Warn, "valkey 9.2.0": doctor.Warn, "valkey 10.0.0": doctor.Warn,
		"valkey 9.1.2-rc1": doctor.Fail, "valkey 9": doctor.Fail,
	} {
		a := newActor(t)
		product, number, _ := strings.Cut(version, " ")
		if a.version = number; product == "valkey" {
			a.version, a.info = "7.2.4", "server_name:valkey\r\nvalkey_version:"+number+"\r\n"
		}
		found := examine(t, "redis://firstcome:"+services.Password+"@"+a.listener.Addr().String())
		if f := found["the user default"]; f.Grade != grade {
			t.Errorf("%s: it is %+v", version, f)
		}
	}
}

// awaitLoaded waits until a Redis has read its append-only file. Until then a gate cannot be opened, because Redis answers LOADING.
func awaitLoaded(t *testing.T, at string) {
	t.Helper()
	for until := time.Now().Add(time.Minute); ; {
		gate, err := redis.Open(t.Context(), redis.Options{URL: at})
		if err == nil {
			gate.Close()
			return
		}
		if !strings.Contains(err.Error(), "LOADING") || time.Now().After(until) {
			t.Fatal(err)
		}
	}
}

func TestADefaultUserThatIsOpenOrHasAPasswordIsSafe(t *testing.T) {
	for _, line := range []string{"user default on nopass ~* &* +@all", "user default on >" + services.Password + " ~* &* +@all -@dangerous"} {
		server, at := hardened(t, line)
		examine(t, as(t, server.URL(), "operator")).Want(t, doctor.OK, "the user default")
		if strings.Contains(line, "nopass") {
			examine(t, at).Want(t, doctor.OK, "the user default") // this user may run ACL GETUSER
			examine(t, server.URL()).Want(t, doctor.OK, "the user default")
		}
	}
	server, at := hardened(t, "user default on nopass ~cached:* &* +@all")
	examine(t, as(t, server.URL(), "operator")).Want(t, doctor.Fail, "the user default")
	examine(t, at).Want(t, doctor.Warn, "the user default")
}
