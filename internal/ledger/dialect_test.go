package ledger

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

	"github.com/firstcome/firstcome"
)

func TestF51F52EveryErrorOfADriverHasItsVerdict(t *testing.T) {
	my := func(number uint16) error { return fmt.Errorf("write: %w", &mysql.MySQLError{Number: number}) }
	pg := func(code string) error { return fmt.Errorf("write: %w", &pgconn.PgError{Code: code}) }
	for _, c := range []struct {
		of   *dialect
		err  error
		want verdict
	}{
		{&mySQL, my(1213), again},
		{&mySQL, my(1205), again},
		{&mySQL, my(1020), again},
		{&mySQL, my(1412), again},
		{&mySQL, my(3101), again},
		{&mySQL, my(1047), unreachable},
		{&mySQL, my(1062), refused},
		{&mySQL, my(1406), refused},
		{&mySQL, my(4025), refused},
		{&mySQL, my(3819), refused},
		{&mySQL, my(1053), unreachable},
		{&mySQL, my(1040), unreachable},
		{&mySQL, my(1290), unreachable},
		{&mySQL, my(1021), unreachable},
		{&mySQL, my(1142), broken},
		{&mySQL, my(1146), broken},
		{&mySQL, mysql.ErrInvalidConn, unreachable},
		{&mySQL, driver.ErrBadConn, unreachable},
		{&postgreSQL, pg("40001"), again},
		{&postgreSQL, pg("40P01"), again},
		{&postgreSQL, pg("55P03"), again},
		{&postgreSQL, pg("0A000"), again},
		{&postgreSQL, pg("26000"), again},
		{&postgreSQL, pg("25006"), unreachable},
		{&postgreSQL, pg("58030"), unreachable},
		{&postgreSQL, pg("23505"), refused},
		{&postgreSQL, pg("23514"), refused},
		{&postgreSQL, pg("57P01"), unreachable},
		{&postgreSQL, pg("53300"), unreachable},
		{&postgreSQL, pg("25P03"), unreachable},
		{&postgreSQL, pg("42501"), broken},
		{&postgreSQL, pg("42P01"), broken},
		{&postgreSQL, io.ErrUnexpectedEOF, unreachable},
		{&postgreSQL, &net.OpError{Op: "read", Err: io.EOF}, unreachable},
		{&postgreSQL, context.DeadlineExceeded, unreachable},
		{&mySQL, firstcome.ErrNoCampaign, notOurs},
		{&postgreSQL, errors.New("a job's own"), notOurs},
		{&postgreSQL, nil, notOurs},
	} {
		if got := c.of.classify(c.err); got != c.want {
			t.Errorf("%s: %v is %d, want %d", c.of.name, c.err, got, c.want)
		}
	}
}

func TestArgumentsAreMarkedAsTheDatabaseWantsThem(t *testing.T) {
	const query = `SELECT a FROM b WHERE c = ? AND d IN (?, ?) LIMIT ?`
	for d, want := range map[*dialect]string{
		&sqLite: query, &mySQL: query,
		&postgreSQL: `SELECT a FROM b WHERE c = $1 AND d IN ($2, $3) LIMIT $4`,
	} {
		if got := d.rebind(query); got != want {
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
