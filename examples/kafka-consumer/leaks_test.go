//go:build !check

package main

import (
	"os"
	"testing"

	"github.com/firstcome/firstcome/test/services"
)

func TestMain(m *testing.M) {
	if point := os.Getenv(killedAt); point != "" {
		beKilled(point)
	}
	services.Main(m)
}
