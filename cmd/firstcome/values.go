package main

import (
	"errors"
	"fmt"
	"math"
	"net"
	"net/netip"
	"net/url"
	"reflect"
	"strconv"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/api"
	"github.com/firstcome/firstcome/internal/auth"
	"github.com/firstcome/firstcome/internal/sqldb"
)

// A ledgerName is sqlite:FILE, or the URL of a database on a server.
type ledgerName string

func (n *ledgerName) UnmarshalText(text []byte) error {
	if err := sqldb.CheckName(string(text)); err != nil {
		return err
	}
	*n = ledgerName(text)
	return nil
}

// String returns the name without password and options.
func (n ledgerName) String() string { return sqldb.Masked(string(n)) }

// flag returns the flag that names the ledger, for a command that is printed. It is empty for a name with a password or options, which must not be
// printed: the operator has that name in FIRSTCOME_LEDGER.
func (n ledgerName) flag() string {
	if n.String() != string(n) {
		return ""
	}
	return " --ledger " + string(n)
}

// path returns the name for ledger.Open: the ledger's file, with links followed, or the URL.
func (n ledgerName) path() string {
	if sqldb.OnServer(string(n)) {
		return string(n)
	}
	path, _ := sqldb.Path(string(n)) // UnmarshalText has checked it
	return sqldb.File(path)
}

// A listenAddress is HOST:PORT. The host may be absent; port 0 takes a free port.
type listenAddress string

func (a *listenAddress) UnmarshalText(text []byte) error {
	_, port, err := net.SplitHostPort(string(text))
	if err == nil {
		_, err = strconv.ParseUint(port, 10, 16)
	}
	if err != nil {
		return fmt.Errorf("%q is not an address: write HOST:PORT, like 127.0.0.1:8080 or :8080", text)
	}
	*a = listenAddress(text)
	return nil
}

// port returns the address's port, or 0 for any free port.
func (a listenAddress) port() int {
	_, text, _ := net.SplitHostPort(string(a)) // UnmarshalText has checked it
	port, _ := strconv.Atoi(text)
	return port
}

// here returns the address at which this machine reaches a: a itself, or loopback if a means all addresses.
func (a listenAddress) here() string {
	host, port, _ := net.SplitHostPort(string(a))
	switch ip, err := netip.ParseAddr(host); {
	case host == "", err == nil && ip == netip.IPv4Unspecified():
		host = "127.0.0.1"
	case err == nil && ip == netip.IPv6Unspecified():
		host = "::1"
	}
	return net.JoinHostPort(host, port)
}

// isLoopback reports whether only this machine can reach the address.
func (a listenAddress) isLoopback() bool { return auth.IsLoopback(string(a)) }

// An opsAddress is a listenAddress, or off. Empty means the port next to the API's: see beside.
type opsAddress string

const opsOff opsAddress = "off"

func (a *opsAddress) UnmarshalText(text []byte) error {
	if opsAddress(text) == opsOff {
		*a = opsOff
		return nil
	}
	var address listenAddress
	if err := address.UnmarshalText(text); err != nil {
		return fmt.Errorf("%w, or off", err)
	}
	*a = opsAddress(address)
	return nil
}

// A consoleAddress is on, off, or the listenAddress of the console's own listener. Empty means on if the API is on loopback, otherwise off.
type consoleAddress string

const (
	consoleOn  consoleAddress = "on"
	consoleOff consoleAddress = "off"
)

func (a *consoleAddress) UnmarshalText(text []byte) error {
	if at := consoleAddress(text); at == consoleOn || at == consoleOff {
		*a = at
		return nil
	}
	var address listenAddress
	if err := address.UnmarshalText(text); err != nil {
		return fmt.Errorf("%w, or on, or off", err)
	}
	*a = consoleAddress(address)
	return nil
}

// own returns the address of the console's own listener, or an empty string if it has none.
func (a consoleAddress) own() listenAddress {
	if a == "" || a == consoleOn || a == consoleOff {
		return ""
	}
	return listenAddress(a)
}

// beside reports whether the API's listener serves the console.
func (a consoleAddress) beside(listen listenAddress) bool {
	return a == consoleOn || a == "" && listen.isLoopback()
}

// beside returns the ops address of a node that serves the API at listen, or an empty string for none. If a is empty, the address is the port after
// listen's, on loopback, so that a second node on the same machine can start. If listen has the last port, it is the port before; if listen has any
// free port, it is any free port.
func (a opsAddress) beside(listen listenAddress) string {
	if a == opsOff {
		return ""
	}
	if a != "" {
		return string(a)
	}
	port := listen.port()
	switch port {
	case 0:
	case math.MaxUint16:
		port--
	default:
		port++
	}
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
}

// A serverURL is http://HOST:PORT or https://HOST.
type serverURL string

func (s *serverURL) UnmarshalText(text []byte) error {
	u, err := url.Parse(string(text))
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return errors.New("a server is a URL like http://127.0.0.1:8080; only firstcome load accepts several, separated by commas")
	}
	if u.User != nil {
		return errors.New("a server's URL has no user and password: the API key is FIRSTCOME_KEY")
	}
	*s = serverURL(strings.TrimSuffix(string(text), "/"))
	return nil
}

// readNetwork reads 10.0.0.0/8 or 10.1.2.3.
func readNetwork(ctx *kong.DecodeContext, target reflect.Value) error {
	text := ctx.Scan.Pop().String()
	prefix, err := netip.ParsePrefix(text)
	if ip, notIP := netip.ParseAddr(text); notIP == nil {
		prefix, err = ip.Prefix(ip.BitLen())
	}
	if err != nil {
		return fmt.Errorf("%q is neither an address nor a range like 10.0.0.0/8", text)
	}
	target.Set(reflect.ValueOf(prefix.Masked()))
	return nil
}

// An origin is a web origin whose pages may call the API.
type origin string

// UnmarshalText reads https://app.shop.example.
func (o *origin) UnmarshalText(text []byte) error {
	parsed, err := api.ParseOrigin(string(text))
	*o = origin(parsed)
	return err
}

// texts returns flags as strings.
func texts[T ~string](flags []T) []string {
	var all []string
	for _, f := range flags {
		all = append(all, string(f))
	}
	return all
}

// A userName is a user's id.
type userName string

func (u *userName) UnmarshalText(text []byte) error {
	id, err := firstcome.ParseUserID(string(text))
	*u = userName(id)
	return err
}

// A couponCode is a coupon's code as typed. The server parses it.
type couponCode string

// UnmarshalText refuses an empty code: searching by it would find all coupons.
func (c *couponCode) UnmarshalText(text []byte) error {
	if len(text) == 0 {
		return errors.New("a coupon's code is not empty")
	}
	*c = couponCode(text)
	return nil
}

// A couponName is a coupon's number or its code.
type couponName struct {
	number int64 // 0 for a code
	code   string
}

// codeLength is the number of characters in a coupon's code. No coupon's number has as many digits.
const codeLength = 16

// UnmarshalText distinguishes numbers from codes.
func (n *couponName) UnmarshalText(text []byte) error {
	number, err := strconv.ParseInt(string(text), 10, 64)
	isNumber := err == nil && len(text) < codeLength
	switch {
	case len(text) == 0, isNumber && number < 1:
		return fmt.Errorf("%q is neither a number from 1 on nor a code", text)
	case isNumber:
		*n = couponName{number: number}
	default:
		*n = couponName{code: string(text)}
	}
	return nil
}

// A count is a whole number from 1 on.
type count int

func (c *count) UnmarshalText(text []byte) error {
	n, err := strconv.ParseInt(strings.ReplaceAll(string(text), "_", ""), 10, 32)
	if err != nil || n < 1 {
		return fmt.Errorf("%q is not a whole number from 1 on", text)
	}
	*c = count(n)
	return nil
}

// A perSecond is a limit on a rate per second. 0 means no limit.
type perSecond float64

func (p *perSecond) UnmarshalText(text []byte) error {
	v, err := strconv.ParseFloat(string(text), 64)
	if err != nil || !(v >= 0 && v <= 1e9) {
		return fmt.Errorf("%q is not a rate per second; 0 sets no limit", text)
	}
	*p = perSecond(v)
	return nil
}

// A share is a number from 0 to 1.
type share float64

func (s *share) UnmarshalText(text []byte) error {
	v, err := strconv.ParseFloat(string(text), 64)
	if err != nil || !(v >= 0 && v <= 1) {
		return fmt.Errorf("%q is not a share: write a number from 0 to 1, like 0.98", text)
	}
	*s = share(v)
	return nil
}
