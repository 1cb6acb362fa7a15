package sqldb

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5/pgconn"
	"go.uber.org/goleak"

	"github.com/firstcome/firstcome"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestF51F52EveryErrorOfADriverHasItsVerdict(t *testing.T) {
	my := func(number uint16) error { return fmt.Errorf("write: %w", &mysql.MySQLError{Number: number}) }
	pg := func(code string) error { return fmt.Errorf("write: %w", &pgconn.PgError{Code: code}) }
	for _, c := range []struct {
		of   *Dialect
		err  error
		want verdict
	}{
		{&MySQL, my(1213), again},
		{&MySQL, my(1205), again},
		{&MySQL, my(1020), again},
		{&MySQL, my(1412), again},
		{&MySQL, my(3101), again},
		{&MySQL, my(1047), unreachable},
		{&MySQL, my(1062), Refused},
		{&MySQL, my(1406), Refused},
		{&MySQL, my(4025), Refused},
		{&MySQL, my(3819), Refused},
		{&MySQL, my(1053), unreachable},
		{&MySQL, my(1040), unreachable},
		{&MySQL, my(1290), unreachable},
		{&MySQL, my(1021), unreachable},
		{&MySQL, my(1142), broken},
		{&MySQL, my(1146), broken},
		{&MySQL, mysql.ErrInvalidConn, unreachable},
		{&MySQL, driver.ErrBadConn, unreachable},
		{&PostgreSQL, pg("40001"), again},
		{&PostgreSQL, pg("40P01"), again},
		{&PostgreSQL, pg("55P03"), again},
		{&PostgreSQL, pg("0A000"), again},
		{&PostgreSQL, pg("26000"), again},
		{&PostgreSQL, pg("25006"), unreachable},
		{&PostgreSQL, pg("58030"), unreachable},
		{&PostgreSQL, pg("23505"), Refused},
		{&PostgreSQL, pg("23514"), Refused},
		{&PostgreSQL, pg("57P01"), unreachable},
		{&PostgreSQL, pg("53300"), unreachable},
		{&PostgreSQL, pg("25P03"), unreachable},
		{&PostgreSQL, pg("42501"), broken},
		{&PostgreSQL, pg("42P01"), broken},
		{&PostgreSQL, io.ErrUnexpectedEOF, unreachable},
		{&PostgreSQL, &net.OpError{Op: "read", Err: io.EOF}, unreachable},
		{&PostgreSQL, context.DeadlineExceeded, unreachable},
		{&MySQL, firstcome.ErrNoCampaign, NotOurs},
		{&PostgreSQL, errors.New("a job's own"), NotOurs},
		{&PostgreSQL, nil, NotOurs},
	} {
		if got := c.of.Classify(c.err); got != c.want {
			t.Errorf("%s: %v is %d, want %d", c.of.name, c.err, got, c.want)
		}
	}
}

func TestArgumentsAreMarkedAsTheDatabaseWantsThem(t *testing.T) {
	const query = `SELECT a FROM b WHERE c = ? AND d IN (?, ?) LIMIT ?`
	for d, want := range map[*Dialect]string{
		&SQLite: query, &MySQL: query,
		&PostgreSQL: `SELECT a FROM b WHERE c = $1 AND d IN ($2, $3) LIMIT $4`,
	} {
		if got := d.Rebind(query); got != want {
			t.Errorf("%s: %s", d.name, got)
		}
	}
}

func TestF53AServerThatStopsInMidAnswerIsTrouble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, far := net.Pipe()
		defer far.Close()
		c := &impatient{Conn: near, answer: 10 * time.Millisecond}
		defer c.Close()
		go func() { _, _ = far.Write([]byte("begun")) }()
		if n, err := c.Read(make([]byte, 10)); n != 5 || err != nil {
			t.Errorf("read %d, %v", n, err)
		}
		_, err := c.Read(make([]byte, 10))
		if classifyConnection(err) != unreachable {
			t.Errorf("an answer that does not go on: %v", err)
		}
		if err := c.SetDeadline(time.Now().Add(-time.Second)); err != nil { // as a driver does whose caller gave up
			t.Fatal(err)
		}
		if _, err := c.Read(make([]byte, 10)); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("after the driver's deadline: %v", err)
		}
	})
}
