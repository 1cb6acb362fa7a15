package httpd

import "strings"

// A Route is a method and a path, in which {…} stands for one segment.
type Route struct{ Method, Path string }

// isShort reports whether a lane may answer a request for the target: never if it has an escape or a query.
func (s *Server) isShort(method, target string) bool {
	for n := range s.Short {
		if r := &s.Short[n]; r.Method == method && matches(r.Path, target) {
			return true
		}
	}
	return false
}

// matches reports whether a path matches a route's.
func matches(route, path string) bool {
	end := route[strings.LastIndexByte(route, '}')+1:]
	if !strings.HasSuffix(path, end) { // most routes differ only in their ends
		return false
	}
	for route != "" && path != "" {
		if route[0] != '{' {
			if route[0] != path[0] {
				return false
			}
			route, path = route[1:], path[1:]
			continue
		}
		segment, _, _ := strings.Cut(path, "/")
		if segment == "" || !all(segment, isUnreserved) {
			return false
		}
		route, path = route[strings.IndexByte(route, '}')+1:], path[len(segment):]
	}
	return route == path // both are empty
}
