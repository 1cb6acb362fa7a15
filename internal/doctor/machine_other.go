//go:build !unix

package doctor

import "errors"

func maxOpenFiles() (uint64, error) { return 0, errors.ErrUnsupported }

func freeBytes(string) (uint64, error) { return 0, errors.ErrUnsupported }
