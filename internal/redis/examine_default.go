package redis

import (
	"cmp"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/redis/rueidis"

	"github.com/firstcome/firstcome/internal/doctor"
)

// SafeDefault locks out clients that do not log in, and still lets Redis load its append-only file.
const SafeDefault = "user default off nopass ~* &* +@all"

// defaultUser finds out whether Redis can load its append-only file. It loads with the rights of the user default,
// and passes over what that may not write in a transaction, which is what each script of ours
// is in the file: upstream, redis#14541 and valkey#3983. So a user default that was only switched off loses every
// campaign at the next restart, without a word in Redis's log. Later versions load all of it.
func (e *exam) defaultUser(node rueidis.Client, info map[string]string) {
	const what = "the user default"
	may, known := e.defaultMay(node)
	loads := loadsAll(info)
	switch {
	case !known && loads:
		e.Add(doctor.OK, what, "", "this user may not look at it (ACL GETUSER), and this version loads the append-only file whatever it may do")
	case !known:
		e.Add(doctor.Warn, what, "see that the access list has the line "+SafeDefault+", or leaves the user default on", "this user may not look at it (ACL GETUSER); if it was switched off without all rights, a restart of Redis loses every campaign")
	case may:
		e.Add(doctor.OK, what, "", "it has the rights with which Redis loads its append-only file")
	case loads:
		e.Add(doctor.Warn, what, "in the file that a restart reads: "+SafeDefault+": nobody can log in as it",
			"it may not write all keys of firstcome; this version loads the append-only file all the same, and an earlier one, as of a replica that takes over, would lose every campaign at its next restart")
	default:
		e.Add(doctor.Fail, what, "at once, and in the file that a restart reads: "+SafeDefault+" (ACL SETUSER default off nopass ~* &* +@all): nobody can log in as it",
			"it may not write all keys of firstcome, and with its rights Redis loads the append-only file: a restart would lose every campaign")
	}
}

// loadsAll reports whether a version is known to load the whole append-only file, whatever the user default may do.
func loadsAll(info map[string]string) bool {
	since, version := [][3]int{{8, 6, 1}}, info["redis_version"]
	if v := info["valkey_version"]; v != "" { // by series; redis_version is that of the Redis it came from
		since, version = [][3]int{{7, 2, 15}, {8, 0, 11}, {8, 1, 10}, {9, 0, 7}, {9, 1, 2}}, v
	}
	var is [3]int
	parts := strings.Split(version, ".")
	if len(parts) != len(is) {
		return false
	}
	for n, part := range parts {
		var err error
		if is[n], err = strconv.Atoi(part); err != nil {
			return false
		}
	}
	for _, cured := range since {
		if is[0] == cured[0] && is[1] == cured[1] {
			return is[2] >= cured[2]
		}
	}
	last := since[len(since)-1]
	return slices.Compare(is[:], last[:]) > 0
}

// defaultMay reports whether the user default may write all of our keys, and whether that is known.
func (e *exam) defaultMay(node rueidis.Client) (may, known bool) {
	if u, err := readURL(e.conn.options.URL); err == nil && cmp.Or(u.Username, "default") == "default" {
		return true, true // the exam tries what the scripts need with this very user
	}
	user, err := node.Do(e.ctx, node.B().AclGetuser().Username("default").Build()).AsMap()
	if err == nil {
		return allKeys(user) && allCommands(user), true
	}
	return true, e.openToAll()
}

// allKeys reports whether a user may write all of our keys.
func allKeys(user map[string]rueidis.RedisMessage) bool {
	return has(user, "flags", "allkeys") || slices.ContainsFunc([]string{"~*", "*", "~firstcome:*", "firstcome:*"}, func(keys string) bool {
		return has(user, "keys", keys)
	})
}

func allCommands(user map[string]rueidis.RedisMessage) bool {
	return has(user, "flags", "allcommands") || has(user, "commands", "+@all") && !has(user, "commands", "-@write")
}

// has reports whether a part of the answer to ACL GETUSER, which is a text or a list of them, has a word.
func has(user map[string]rueidis.RedisMessage, part, word string) bool {
	message := user[part]
	words, err := message.AsStrSlice()
	if err != nil {
		text, _ := message.ToString()
		words = strings.Fields(text)
	}
	return slices.Contains(words, word)
}

// openToAll reports whether the user default may do what the scripts do. Clients that do not log in are this user.
func (e *exam) openToAll() bool {
	u, err := url.Parse(e.conn.options.URL)
	if err != nil {
		return false
	}
	u.User = nil
	client, err := connect(Options{URL: u.String()})
	if err != nil {
		return false
	}
	defer client.Close()
	return (&conn{client: client}).checkRights(e.ctx) == nil
}
