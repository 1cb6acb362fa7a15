package redis

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/redis/rueidis"

	"github.com/firstcome/firstcome/internal/trust"
)

// CheckURL returns an error that says what is wrong with the URL of a gate, or with the
// files that it names. It never repeats a password.
func CheckURL(text string) error {
	_, err := readURL(text)
	return err
}

// urlOptions are those of a URL besides package trust's.
var urlOptions = []string{"addr", "db", "master_set", "protocol", "skip_verify"}

// readURL reads a URL. Other packages' errors about an unreadable URL may contain part
// of the password, so they are not shown.
func readURL(text string) (rueidis.ClientOption, error) {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "redis" && u.Scheme != "rediss" || u.Host == "" {
		return rueidis.ClientOption{}, errors.New("the Redis URL cannot be read: it is like redis://USER:PASSWORD@HOST:6379/0, or rediss:// for TLS; write special characters of the password as %XX")
	}
	options := u.Query()
	files := trust.Take(options)
	for name := range options {
		if !slices.Contains(urlOptions, name) {
			return rueidis.ClientOption{}, fmt.Errorf("the Redis URL has the option %q, and there are only %s, %s, %s and %s", name,
				strings.Join(urlOptions, ", "), trust.RootOption, trust.CertOption, trust.KeyOption)
		}
	}
	o, err := rueidis.ParseURL(text)
	switch {
	case err != nil:
		return o, errors.New("the Redis URL has a bad database number, or a bad value of skip_verify")
	case files.Root != "" && options.Has("skip_verify"):
		return o, fmt.Errorf("the Redis URL: with %s there is no skip_verify", trust.RootOption)
	case o.TLSConfig != nil:
		if err := files.Apply(o.TLSConfig); err != nil {
			return o, fmt.Errorf("the Redis URL: %w", err)
		}
		o.Sentinel.TLSConfig = o.TLSConfig
	case files != trust.Files{}:
		return o, fmt.Errorf("the Redis URL: %s, %s and %s are of rediss://, which is TLS", trust.RootOption, trust.CertOption, trust.KeyOption)
	}
	return o, nil
}
