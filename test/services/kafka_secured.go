package services

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
)

// A SecuredBroker is a Kafka at which users log in over TLS, and may do nothing that nobody let them do. Server.URL leads to a port of its
// own, without TLS or users, where everybody may do everything.
type SecuredBroker struct {
	*Server
	Certificates
	port int
}

// SecuredKafka starts a SecuredBroker for t.
func SecuredKafka(t testing.TB) *SecuredBroker {
	t.Helper()
	Kafka.mayStart(t)
	recipe, err := Kafka.recipe()
	Kafka.must(t, err)
	dir, files := Kafka.certificates(t)
	b := &SecuredBroker{Certificates: files, port: portFor(t)}
	both, err := keyWithCertificate(dir)
	Kafka.must(t, err)
	const scram = "org.apache.kafka.common.security.scram.ScramLoginModule required;"
	plain := recipe.command
	secured := "SASL_SSL://127.0.0.1:" + strconv.Itoa(b.port)
	recipe.command = func(data, port string) []string {
		return append(plain(data, port), overriding(
			"listeners=PLAINTEXT://127.0.0.1:"+port+","+secured+",CONTROLLER://"+controllerOf(port),
			"advertised.listeners=PLAINTEXT://127.0.0.1:"+port+",SASL_SSL://localhost:"+strconv.Itoa(b.port),
			"listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SASL_SSL:SASL_SSL",
			"sasl.enabled.mechanisms=SCRAM-SHA-512,SCRAM-SHA-256",
			"listener.name.sasl_ssl.scram-sha-512.sasl.jaas.config="+scram, "listener.name.sasl_ssl.scram-sha-256.sasl.jaas.config="+scram,
			"ssl.keystore.type=PEM", "ssl.keystore.location="+both,
			"authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer", "super.users=User:ANONYMOUS")...)
	}
	b.Server, err = Kafka.start(t.Context(), recipe)
	Kafka.ends(t, b.Server, err)
	return b
}

// keyWithCertificate writes the server's key and certificate into one file, as Kafka reads them.
func keyWithCertificate(dir string) (file string, err error) {
	key, err := os.ReadFile(filepath.Join(dir, "server.key"))
	certificate, err2 := os.ReadFile(filepath.Join(dir, "server.pem"))
	file = filepath.Join(dir, "kafka.pem")
	return file, errors.Join(err, err2, os.WriteFile(file, append(key, certificate...), 0o600))
}

// URL returns the URL of a topic for a user, by TLS. It does not say what the client trusts. The password is Password.
func (b *SecuredBroker) URL(user, topic string) string {
	return "kafkas://" + user + ":" + Password + "@" + net.JoinHostPort("localhost", strconv.Itoa(b.port)) + "/" + topic
}

// User makes a user who may do nothing.
func (b *SecuredBroker) User(ctx context.Context, name string) error {
	return b.admin(ctx, func(ctx context.Context, admin *kadm.Client) error {
		for _, mechanism := range []kadm.ScramMechanism{kadm.ScramSha256, kadm.ScramSha512} {
			answer, err := admin.AlterUserSCRAMs(ctx, nil, []kadm.UpsertSCRAM{{User: name, Mechanism: mechanism, Iterations: 4096, Password: Password}})
			if err == nil {
				err = answer.Error()
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// Let lets a user do more: on a topic, or on all groups whose names begin so.
func (b *SecuredBroker) Let(ctx context.Context, user, topic, groups string, may ...kadm.ACLOperation) error {
	return b.admin(ctx, func(ctx context.Context, admin *kadm.Client) error {
		acls := kadm.NewACLs().Allow("User:" + user).AllowHosts().Operations(may...).ResourcePatternType(kadm.ACLPatternLiteral)
		if topic != "" {
			acls = acls.Topics(topic)
		} else {
			acls = acls.Groups(groups).ResourcePatternType(kadm.ACLPatternPrefixed)
		}
		made, err := admin.CreateACLs(ctx, acls)
		for _, one := range made {
			err = errors.Join(err, one.Err)
		}
		return err
	})
}

// admin asks until the broker does something: of one that has just started, controllers may not know each other.
func (b *SecuredBroker) admin(ctx context.Context, do func(context.Context, *kadm.Client) error) error {
	client, err := kafkaClient(b.Server.URL())
	if err != nil {
		return err
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var last error
	err = until(ctx, func() bool {
		ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
		defer cancel()
		last = do(ctx, kadm.NewClient(client))
		return last == nil
	})
	if err != nil {
		return fmt.Errorf("change who may do what: %w", errors.Join(err, last))
	}
	return nil
}
