// Storefront is a shop's drop page as a sample: one static page, and the handler behind it. Copy both.
//
//	firstcome serve &
//	go run ./examples/storefront
package main

import (
	"context"
	"crypto/rand"
	"errors"
	"flag"
	"fmt"
	"log"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/signal"
	"time"

	"github.com/firstcome/firstcome/client"
)

func main() {
	log.SetFlags(0)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context) error {
	listen := flag.String("listen", "127.0.0.1:8088", "where the page is served")
	server := flag.String("server", "http://127.0.0.1:8080", "firstcome, as this process reaches it")
	direct := flag.String("direct", "", "firstcome, as browsers reach it, started with --cors-origin (default: this process passes their requests on)")
	campaign := flag.String("campaign", "storefront", "the campaign's id; one is made if there is none, in development mode only")
	flag.Parse()
	upstream, err := url.Parse(*server)
	if err != nil || upstream.Host == "" {
		return fmt.Errorf("--server %q is no URL like http://127.0.0.1:8080", *server)
	}
	shop := &storefront{server: upstream, direct: *direct, campaign: *campaign, secret: []byte(os.Getenv("FIRSTCOME_JWT_SECRET"))}
	if shop.open = len(shop.secret) == 0; shop.open {
		shop.secret = []byte(rand.Text() + rand.Text())
		if err := makeCampaign(ctx, *server, *campaign); err != nil {
			return err
		}
	}
	return serve(ctx, *listen, shop.handler())
}

// makeCampaign makes a campaign to look at, if there is none: it opens soon, and has a waiting line.
func makeCampaign(ctx context.Context, server, id string) error {
	calls := client.New(server, "")
	defer calls.CloseIdle()
	now, err := answerOf(ctx, calls, id)
	var told *client.Problem
	switch {
	case err == nil:
		log.Printf("the campaign %s is %s", id, now.State)
		return nil
	case !errors.As(err, &told):
		return err
	case told.Status == http.StatusUnauthorized:
		return errors.New("firstcome asks for tokens: set FIRSTCOME_JWT_SECRET to the secret that it has")
	case told.Status != http.StatusNotFound:
		return err
	}
	quantity, pace, first, next := int64(5000), int64(20), int64(100), int64(900)
	_, err = calls.CreateCampaign(ctx, client.NewCampaign{
		ID: id, Name: "가을 첫 세일", Quantity: &quantity, Pace: &client.Pace{PerSecond: &pace},
		OpensAt: &client.Time{Time: time.Now().Add(20 * time.Second)},
		Prizes:  []client.PrizeSpec{{ID: "drink", Name: "음료", Quantity: &first}, {ID: "percent", Name: "20% 할인", Quantity: &next}, {ID: "shipping", Name: "무료 배송"}},
	})
	return err
}

// answerOf reads a campaign, and waits for a server that does not answer yet: it may still be compiled.
func answerOf(ctx context.Context, calls *client.Client, id string) (client.Campaign, error) {
	for tries := 0; ; tries++ {
		now, err := calls.Campaign(ctx, id)
		if told := (*client.Problem)(nil); err == nil || errors.As(err, &told) || ctx.Err() != nil {
			return now, err
		}
		if tries == 0 {
			log.Printf("waiting for firstcome serve: %v", err)
		}
		time.Sleep(200 * time.Millisecond)
	}
}

func serve(ctx context.Context, address string, handler http.Handler) error {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	log.Printf("open http://%s", listener.Addr())
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: time.Minute}
	context.AfterFunc(ctx, func() { _ = server.Close() })
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
