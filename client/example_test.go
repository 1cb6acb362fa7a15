package client_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/firstcome/firstcome/client"
)

// A refusal is an answer. An error means that the result is unknown, and that asking again is safe.
func Example() {
	shop := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/problem+json")
		w.WriteHeader(http.StatusGone)
		fmt.Fprint(w, `{"type":"about:blank","title":"Gone","status":410,"outcome":"sold_out"}`)
	}))
	defer shop.Close()

	c := client.New(shop.URL, "")
	defer c.CloseIdle()
	answer, err := c.Claim(context.Background(), "autumn", "user-1")
	if err != nil {
		fmt.Println("ask again:", err)
		return
	}
	if answer.Coupon == nil {
		fmt.Println("refused:", answer.Outcome)
		return
	}
	fmt.Println("number", answer.Coupon.Number)
	// Output: refused: sold_out
}
