package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/redis/rueidis"
	"golang.org/x/sync/errgroup"

	"github.com/firstcome/firstcome/designs"
)

// serve is one process of a design.
type serve struct {
	Name        string        `arg:""`
	Listen      string        `required:""`
	Coupon      string        `required:""`
	Limit       int64         `required:""`
	Redis       string        `required:""`
	Database    string        `required:""`
	Connections int           `required:""`
	Kafka       string        ``
	Ahead       time.Duration ``
	Origin      time.Duration ``
	Haste       int64         `default:"1"`
}

// run serves a design until ctx ends.
func (s *serve) run(ctx context.Context) error {
	c, err := contestantOf(s.Name)
	if err != nil {
		return err
	}
	shop := &designs.Shop{
		Coupon: s.Coupon, Limit: s.Limit, Haste: time.Duration(s.Haste), Clock: designs.Clock{Ahead: s.Ahead, Origin: s.Origin},
	}
	option, err := rueidis.ParseURL(s.Redis)
	if err != nil {
		return err
	}
	option.DisableCache = true
	if shop.Redis, err = rueidis.NewClient(option); err != nil {
		return err
	}
	defer shop.Redis.Close()
	if shop.Database, err = designs.OpenDatabase(s.Database, s.Connections); err != nil {
		return err
	}
	defer shop.Database.Close()
	design := c.New(shop)
	listener, err := net.Listen("tcp", s.Listen)
	if err != nil {
		return err
	}
	server := &http.Server{Handler: designs.Handler(design), ReadHeaderTimeout: 5 * time.Second}
	running, ctx := errgroup.WithContext(ctx)
	running.Go(func() error {
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			return err
		}
		return nil
	})
	running.Go(func() error { return design.Work(ctx) })
	running.Go(func() error {
		<-ctx.Done()
		return server.Close()
	})
	return running.Wait()
}

// contestantOf returns the design of a name.
func contestantOf(name string) (designs.Contestant, error) {
	for _, c := range designs.Contestants {
		if c.Name == name {
			return c, nil
		}
	}
	return designs.Contestant{}, fmt.Errorf("no contestant is called %q: see --list", name)
}
