package kafka

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"

	"github.com/firstcome/firstcome/internal/trust"
)

const (
	saslOption     = "sasl"         // how to log in
	passwordOption = "passwordfile" // the name of the password's file
)

// The values of saslOption. The first one is the default.
var mechanisms = []string{"scram-sha-512", "scram-sha-256", "plain"}

// errURL describes the form of a URL. It shows nothing of a URL that cannot be parsed, because that may have a password.
var errURL = errors.New("the Kafka URL cannot be read: it is like kafka://HOST:9092,HOST:9092/TOPIC, with USER:PASSWORD@ before the hosts where Kafka asks for it, " +
	"or kafkas:// for TLS; write special characters of the password as %XX")

// A topic is the topic that a URL names, and how to reach it.
type topic struct {
	name    string
	brokers []string // HOST:PORT, of which at least one must be reachable
	tls     *tls.Config
	sasl    sasl.Mechanism
	most    atomic.Int64 // the most bytes of a batch that it takes; 0 if unknown
	// inOrder makes a client hold back the records of one call until it has them all. If the brokers refuse one of them, none that comes after it in its
	// partition is appended. Otherwise the client would append those that it gets after the refusal. The client then serves one caller at a time.
	inOrder bool
}

// CheckURL returns an error if the URL of a topic, or a file that it names, is wrong. The error never has a password.
func CheckURL(text string) error {
	_, err := readURL(text)
	return err
}

// Shown returns a URL without user and password: its scheme, brokers and topic. It returns only the scheme of a URL that cannot be parsed.
func Shown(text string) string {
	t, err := readURL(text)
	scheme, _, _ := strings.Cut(text, ":")
	if err != nil {
		return scheme + "://"
	}
	return scheme + "://" + strings.Join(t.brokers, ",") + "/" + t.name
}

// TopicOf returns the topic's name in a URL for which CheckURL returns nil.
func TopicOf(text string) string {
	t, err := readURL(text)
	if err != nil {
		return ""
	}
	return t.name
}

// readURL parses a URL. url.Parse does not accept its list of hosts.
func readURL(text string) (*topic, error) {
	scheme, rest, found := strings.Cut(text, "://")
	rest, query, _ := strings.Cut(rest, "?")
	user, hosts := "", rest
	if at := strings.LastIndexByte(rest, '@'); at >= 0 {
		user, hosts = rest[:at], rest[at+1:]
	}
	hosts, name, _ := strings.Cut(hosts, "/")
	options, err := url.ParseQuery(query)
	if !found || scheme != "kafka" && scheme != "kafkas" || err != nil {
		return nil, errURL
	}
	t := &topic{name: name, brokers: strings.Split(hosts, ",")}
	for _, broker := range t.brokers {
		if host, port, err := net.SplitHostPort(broker); err != nil || host == "" || port == "" {
			return nil, errURL
		}
	}
	if !isTopic(name) {
		return nil, errors.New("the Kafka URL names no topic: write /TOPIC after the hosts, with 1 to 249 English letters, digits, dots, _ and -")
	}
	files := trust.Take(options)
	if err := t.logIn(user, options, scheme == "kafkas"); err != nil {
		return nil, fmt.Errorf("the Kafka URL: %w", err)
	}
	for option := range options {
		return nil, fmt.Errorf("the Kafka URL has the option %q, and there are only %s, %s, %s, %s and %s", option,
			saslOption, passwordOption, trust.RootOption, trust.CertOption, trust.KeyOption)
	}
	if scheme == "kafka" {
		if files != (trust.Files{}) {
			return nil, fmt.Errorf("the Kafka URL: %s, %s and %s are of kafkas://, which is TLS", trust.RootOption, trust.CertOption, trust.KeyOption)
		}
		return t, nil
	}
	t.tls = &tls.Config{MinVersion: tls.VersionTLS12}
	if err := files.Apply(t.tls); err != nil {
		return nil, fmt.Errorf("the Kafka URL: %w", err)
	}
	return t, nil
}

// isTopic reports whether Kafka accepts a name for a topic.
func isTopic(name string) bool {
	other := strings.IndexFunc(name, func(r rune) bool {
		return (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z') && r != '-' && r != '_' && r != '.'
	})
	return other < 0 && name != "" && name != "." && name != ".." && len(name) <= 249
}

// logIn takes the user, the password and the mechanism from a URL's options.
func (t *topic) logIn(text string, options url.Values, secured bool) error {
	how, file := options.Get(saslOption), options.Get(passwordOption)
	options.Del(saslOption)
	options.Del(passwordOption)
	if text == "" {
		if how != "" || file != "" {
			return fmt.Errorf("%s and %s are about a user: name one before the hosts, like USER@HOST:9092", saslOption, passwordOption)
		}
		return nil
	}
	user, password, has := strings.Cut(text, ":")
	var errs [2]error
	user, errs[0] = url.PathUnescape(user)
	password, errs[1] = url.PathUnescape(password)
	if errors.Join(errs[:]...) != nil || user == "" {
		return errURL
	}
	switch {
	case has && file != "":
		return fmt.Errorf("the password is in the URL and in %s: name it once", passwordOption)
	case file != "":
		read, err := trust.ReadFile(file)
		if err != nil {
			return fmt.Errorf("%s: %w", passwordOption, err)
		}
		password = strings.TrimRight(string(read), "\r\n")
	}
	if password == "" {
		return fmt.Errorf("the user has no password: name it as USER:PASSWORD@, or its file with %s", passwordOption)
	}
	switch how {
	case "", mechanisms[0]:
		t.sasl = scram.Auth{User: user, Pass: password}.AsSha512Mechanism()
	case mechanisms[1]:
		t.sasl = scram.Auth{User: user, Pass: password}.AsSha256Mechanism()
	case mechanisms[2]:
		if !secured {
			return errors.New("sasl=plain sends the password as it is: it needs kafkas://, which is TLS")
		}
		t.sasl = plain.Auth{User: user, Pass: password}.AsMechanism()
	default:
		return fmt.Errorf("%s=%s: it is one of %s", saslOption, how, strings.Join(mechanisms, ", "))
	}
	return nil
}

// options returns the options of every client of the topic.
func (t *topic) options() []kgo.Opt {
	o := []kgo.Opt{kgo.SeedBrokers(t.brokers...), kgo.ClientID("firstcome")}
	if t.tls != nil {
		o = append(o, kgo.DialTLSConfig(t.tls.Clone()))
	} else {
		o = append(o, kgo.DialTimeout(dialTimeout))
	}
	if t.sasl != nil {
		o = append(o, kgo.SASL(t.sasl))
	}
	return slices.Clip(o)
}
