package kafka_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/firstcome/firstcome/internal/kafka"
	"github.com/firstcome/firstcome/test/stage"
)

func TestAURLIsShownWithoutItsUser(t *testing.T) {
	file := filepath.Join(t.TempDir(), "password")
	stage.Must(t, os.WriteFile(file, []byte("secret\n"), 0o600))
	for url, shown := range map[string]string{
		"kafka://a:9092/coupons":                                            "kafka://a:9092/coupons",
		"kafka://a:9092,b:9093/coupons.v1":                                  "kafka://a:9092,b:9093/coupons.v1",
		"kafka://u:p%40ss@[::1]:9092/c-_":                                   "kafka://[::1]:9092/c-_",
		"kafkas://u:secret@a:9093/coupons?sasl=plain":                       "kafkas://a:9093/coupons",
		"kafkas://u@a:9093/coupons?sasl=scram-sha-256&passwordfile=" + file: "kafkas://a:9093/coupons",
	} {
		stage.Must(t, kafka.CheckURL(url))
		if got := kafka.Shown(url); got != shown {
			t.Errorf("%s is shown as %s", url, got)
		}
	}
}

func TestWhatIsWrongWithAURLIsSaidAndNotItsPassword(t *testing.T) {
	for url, part := range map[string]string{
		"":                                   "cannot be read",
		"kafka:":                             "cannot be read",
		"http://a:9092/coupons":              "cannot be read",
		"kafka:///coupons":                   "cannot be read",
		"kafka://a/coupons":                  "cannot be read",
		"kafka://a:9092,b/coupons":           "cannot be read",
		"kafka://u:secret%zz@a:9092/coupons": "cannot be read",
		"kafka://:secret@a:9092/coupons":     "cannot be read",
		"kafka://a:9092":                     "no topic",
		"kafka://a:9092/":                    "no topic",
		"kafka://a:9092/..":                  "no topic",
		"kafka://a:9092/a/b":                 "no topic",
		"kafka://a:9092/" + strings.Repeat("x", 250):   "no topic",
		"kafka://u:secret@a:9092/c?sasl=plain":         "needs kafkas://",
		"kafka://u:secret@a:9092/c?sasl=secret":        "it is one of scram-sha-512",
		"kafka://u@a:9092/c":                           "no password",
		"kafka://u@a:9092/c?passwordfile=/none":        "passwordfile: open /none",
		"kafka://u:secret@a:9092/c?passwordfile=/none": "name it once",
		"kafka://a:9092/c?sasl=plain":                  "name one before the hosts",
		"kafka://a:9092/c?sslrootcert=ca.pem":          "are of kafkas://",
		"kafkas://a:9092/c?sslrootcert=/none":          "sslrootcert: open /none",
		"kafka://a:9092/c?acks=1":                      `the option "acks"`,
	} {
		err := kafka.CheckURL(url)
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("%s: %v", url, err)
		}
		if err != nil && !strings.Contains(url, "sasl=secret") && strings.Contains(err.Error(), "secret") || strings.Contains(kafka.Shown(url), "secret") {
			t.Errorf("%s shows the password: %v, %s", url, err, kafka.Shown(url))
		}
	}
}
