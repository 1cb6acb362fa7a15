package api_test

import (
	"io"
	"net"
	"strings"
	"testing"

	"github.com/firstcome/firstcome/internal/api"
	"github.com/firstcome/firstcome/internal/auth"
	"github.com/firstcome/firstcome/test/stage"
)

// Beginnings of claims that never end.
const (
	claimHead  = "POST /v1/campaigns/c/claims HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 15\r\n\r\n"
	claimChunk = "POST /v1/campaigns/c/claims HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\nf\r\n{"
)

// TestTheAddressLimitCountsBeforeTheBody: half a claim counts for its address.
func TestTheAddressLimitCountsBeforeTheBody(t *testing.T) {
	for name, text := range map[string]string{"in a lane": claimHead, "by net/http": claimChunk} {
		t.Run(name, func(t *testing.T) {
			addresses := auth.NewLimiter(0.001, 1, 100)
			s := open(t, guarded, func(_ *shop, c *api.Options) { c.AddressLimit = addresses })
			from := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}}
			c, err := from.DialContext(t.Context(), "tcp", strings.TrimPrefix(s.url, "http://"))
			stage.Must(t, err)
			defer c.Close()
			stage.Must(t, stage.Err(io.WriteString(c, text)))
			stage.Await(t, "the claim's head", 1, addresses.Len)
			if addresses.Allow("127.0.0.2"); addresses.Len() != 1 {
				t.Error("half a claim counted for another address")
			}
		})
	}
}
