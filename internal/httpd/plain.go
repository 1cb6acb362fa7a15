package httpd

import (
	"bytes"
	"net/http"
	"net/textproto"
	"strings"
)

// A plain is an HTTP/1.1 request that can be read in one way only: it has a Content-Length or no body, and no header about its connection.
type plain struct {
	method, target, host string
	header               http.Header // without Host, as in an http.Request
	body                 []byte

	values []string // the array behind the header's slices
}

// A finding is the content of a buffer.
type finding int

const (
	other    finding = iota // not a plain request, or not alone
	part                    // the beginning of what may become a plain request
	headed                  // the head of a plain request, and part of its body
	complete                // one plain request, and nothing after it
)

// maxLines is how many lines a plain request's header may have: twice what browsers and their proxies
// send. A head that comes in pieces is read again with each piece, so reading it must cost little.
const maxLines = 64

// blank ends the head of a request.
const blank = "\r\n\r\n"

// read parses a buffer. Only the body shares memory with the buffer. The fields are valid only for the findings complete and headed.
func (p *plain) read(b []byte) finding {
	end := bytes.Index(b, []byte(blank))
	if end < 0 {
		return p.readPart(string(b))
	}
	body := b[end+len(blank):]
	if !p.readHead(string(b[:end])) || p.host == "" {
		return other
	}
	length, ok := p.length()
	switch {
	case !ok || len(body) > length:
		return other
	case len(body) < length:
		return headed
	}
	p.body, p.target = body, strings.Clone(p.target) // a handler that keeps part of the path must not keep the whole head
	return complete
}

// readPart parses an incomplete head. It finds out at once that a request is not plain, because net/http may have to answer it without waiting for
// the rest.
func (p *plain) readPart(head string) finding {
	last := head // the incomplete line
	if end := strings.LastIndex(head, "\r\n"); end >= 0 {
		if last = head[end+len("\r\n"):]; !p.readHead(head[:end]) {
			return other
		}
	}
	if strings.Contains(last, "\n") {
		return other
	}
	return part
}

// readHead parses complete lines of a head. It does not check for a Host header.
func (p *plain) readHead(head string) bool {
	line, fields, _ := strings.Cut(head, "\r\n")
	return p.readLine(line) && p.readFields(fields)
}

// readLine parses a request's first line.
func (p *plain) readLine(line string) (ok bool) {
	p.method, line, _ = strings.Cut(line, " ")
	switch p.method {
	case "GET", "POST", "PUT", "PATCH", "DELETE":
	default:
		return false
	}
	p.target, ok = strings.CutSuffix(line, " HTTP/1.1")
	return ok && strings.HasPrefix(p.target, "/") && isTarget(p.target)
}

// readFields parses a request's header lines.
func (p *plain) readFields(lines string) bool {
	if p.header == nil {
		p.header = http.Header{}
	}
	clear(p.header)
	p.values, p.host = p.values[:0], ""
	for n := 0; lines != ""; n++ {
		if n == maxLines {
			return false
		}
		var line string
		line, lines, _ = strings.Cut(lines, "\r\n")
		name, value, ok := strings.Cut(line, ":")
		if value = strings.Trim(value, " \t"); !ok || name == "" || !all(name, isToken) || !all(value, isText) {
			return false
		}
		name = textproto.CanonicalMIMEHeaderKey(name)
		switch name {
		case "Host":
			if p.host != "" || value == "" || !all(value, isHost) {
				return false
			}
			p.host = value
			continue
		case "Connection":
			if !strings.EqualFold(value, "keep-alive") {
				return false
			}
		case "Transfer-Encoding", "Trailer", "Te", "Expect", "Upgrade", "Keep-Alive", "Proxy-Connection", "Http2-Settings", "Pragma":
			return false // net/http handles these, or may in a later version
		}
		p.add(name, value)
	}
	return true
}

// add adds a header. It allocates only for a header that comes more than once, which is rare.
func (p *plain) add(name, value string) {
	if before := p.header[name]; before != nil {
		p.header[name] = append(before, value)
		return
	}
	p.values = append(p.values, value)
	n := len(p.values)
	p.header[name] = p.values[n-1 : n : n]
}

// length returns the body's length in bytes, by Content-Length.
func (p *plain) length() (length int, ok bool) {
	texts := p.header["Content-Length"]
	if texts == nil {
		return 0, true
	}
	if len(texts) > 1 || texts[0] == "" || len(texts[0]) > len("99999") {
		return 0, false
	}
	for _, c := range []byte(texts[0]) {
		if c < '0' || '9' < c {
			return 0, false
		}
		length = 10*length + int(c-'0')
	}
	return length, true
}

func all(text string, is func(byte) bool) bool {
	for n := range len(text) {
		if !is(text[n]) {
			return false
		}
	}
	return true
}

func isAlphanumeric(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
}

// isUnreserved reports whether a character stands for itself in a path, by RFC 3986.
func isUnreserved(c byte) bool {
	return isAlphanumeric(c) || c == '-' || c == '.' || c == '_' || c == '~'
}

// isTarget reports whether a text may be a path and its query, by RFC 3986.
func isTarget(text string) bool {
	for n := range len(text) {
		c := text[n]
		switch {
		case isUnreserved(c) || strings.IndexByte("/?:@!$&'()*+,;=", c) >= 0:
		case c == '%' && n+2 < len(text) && isHex(text[n+1]) && isHex(text[n+2]):
		default:
			return false
		}
	}
	return true
}

func isHex(c byte) bool { return strings.IndexByte("0123456789abcdefABCDEF", c) >= 0 }

// isHost reports whether a character may be in a name, IP address or port.
func isHost(c byte) bool {
	return isUnreserved(c) || c == ':' || c == '[' || c == ']'
}

// isToken reports whether a character may be in a header's name, by RFC 9110.
func isToken(c byte) bool {
	return isAlphanumeric(c) || strings.IndexByte("!#$%&'*+-.^_`|~", c) >= 0
}

// isText reports whether a character may be in a header's value.
func isText(c byte) bool { return c >= ' ' && c != 0x7f || c == '\t' }
