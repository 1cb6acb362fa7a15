package httpd

import "strings"

// A Route is a method and a path, in which {…} stands for one segment.
type Route struct{ Method, Path string }

// isShort tells whether a lane may answer a request for the target: never with an escape or a query.
func (s *Server) isShort(method, target string) bool {
	for n := range s.Short {
		if r := &s.Short[n]; r.Method == method && matches(r.Path, target) {
			return true
		}
	}
	return false
}

// matches tells whether a path is one of a route's.
func matches(route, path string) bool {
	end := route[strings.LastIndexByte(route, '}')+1:]
	if !strings.HasSuffix(path, end) { // most routes differ in their ends alone
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
	return route == path // both have ended
}
