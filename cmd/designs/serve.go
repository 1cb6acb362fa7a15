package main

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/firstcome/firstcome/designs"
	"github.com/firstcome/firstcome/internal/httpd"
)

// serve is the command line of one process of a design.
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

// open connects a process of a design to its servers. The caller must call shut.
func (s *serve) open(c designs.Contestant) (shop *designs.Shop, shut func(), err error) {
	var opened []func()
	shut = func() {
		for _, one := range opened {
			one()
		}
	}
	defer func() {
		if err != nil {
			shut()
		}
	}()
	shop = &designs.Shop{
		Coupon: s.Coupon, Limit: s.Limit, Haste: time.Duration(s.Haste), Clock: designs.Clock{Ahead: s.Ahead, Origin: s.Origin},
	}
	if shop.Redis, err = designs.OpenRedis(s.Redis, c); err != nil {
		return nil, nil, err
	}
	opened = append(opened, shop.Redis.Close)
	if shop.Database, err = designs.OpenDatabase(s.Database, s.Connections); err != nil {
		return nil, nil, err
	}
	opened = append(opened, func() { _ = shop.Database.Close() })
	if c.Kafka {
		if shop.Kafka, err = designs.OpenTopic(s.Kafka); err != nil {
			return nil, nil, err
		}
		opened = append(opened, shop.Kafka.Close)
	}
	return shop, shut, nil
}

// run serves a design until ctx ends.
func (s *serve) run(ctx context.Context) error {
	c, err := contestantOf(s.Name)
	if err != nil {
		return err
	}
	shop, shut, err := s.open(c)
	if err != nil {
		return err
	}
	defer shut()
	design := c.New(shop)
	listener, err := net.Listen("tcp", s.Listen)
	if err != nil {
		return err
	}
	server := httpd.New(httpd.Options{ // firstcome's own HTTP server, so that the designs are compared, and not their servers
		Handler: designs.Handler(design), Log: slog.New(slog.DiscardHandler),
		Short: []httpd.Route{{Method: http.MethodPost, Path: designs.ApplyRoute}, {Method: http.MethodGet, Path: designs.ResultRoute}},
	})
	running, ctx := errgroup.WithContext(ctx)
	running.Go(func() error { return server.Serve(ctx, listener, nil) })
	running.Go(func() error { return design.Work(ctx) })
	return running.Wait()
}

// contestantOf returns the design with a name.
func contestantOf(name string) (designs.Contestant, error) {
	for _, c := range designs.Contestants {
		if c.Name == name {
			return c, nil
		}
	}
	return designs.Contestant{}, fmt.Errorf("no contestant is called %q: see --list", name)
}

// arguments returns the arguments of the process that listens at an address.
func (s serve) arguments(address string) []string {
	return []string{
		"serve", s.Name, "--listen=" + address, "--coupon=" + s.Coupon, fmt.Sprintf("--limit=%d", s.Limit), "--redis=" + s.Redis, "--database=" + s.Database,
		fmt.Sprintf("--connections=%d", s.Connections), "--kafka=" + s.Kafka, "--ahead=" + s.Ahead.String(), "--origin=" + s.Origin.String(), fmt.Sprintf("--haste=%d", s.Haste),
	}
}

// prepare prepares a design's data in Redis, before the first request.
func (s *serve) prepare(ctx context.Context, c designs.Contestant) error {
	shop, shut, err := s.open(c)
	if err != nil {
		return err
	}
	defer shut()
	return c.Open(ctx, shop)
}
