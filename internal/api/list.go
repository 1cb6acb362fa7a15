package api

import (
	"fmt"
	"net/http"

	"github.com/firstcome/firstcome/client"
)

// pageOf returns at most this many of the items found, and where the rest begins: after the place of the last one
// returned. Asking the ledger for one more than a page shows whether there is a rest; nil says that there is none.
func pageOf[T, P any](found []T, most int, place func(T) P) (page []T, next *string) {
	if len(found) <= most {
		return found, nil
	}
	last := fmt.Sprint(place(found[most-1]))
	return found[:most], &last
}

// writeList answers with a page of a list.
func writeList[T, W any](w http.ResponseWriter, found []T, next *string, wire func(T) W) error {
	list := client.List[W]{Items: make([]W, len(found)), Next: next}
	for n, item := range found {
		list.Items[n] = wire(item)
	}
	return writeJSON(w, http.StatusOK, list)
}

// optional returns a value as the wire has it, where the zero value is absent.
func optional[T comparable](value T) *T {
	var none T
	if value == none {
		return nil
	}
	return &value
}
