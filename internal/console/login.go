package console

import (
	"net/http"
	"net/url"
	"path"
	"strings"
	"time"
)

// A loginPage asks for a key.
type loginPage struct {
	Next  string // the page to show after the login
	Wrong string // why the last try failed
}

// loginHandlers log people in and out.
type loginHandlers struct{ *core }

func (c *loginHandlers) show(v *view) error {
	if c.Auth.Open() {
		return v.redirect(Root)
	}
	return v.render(http.StatusOK, "login", v.say("로그인", "Log in"), loginPage{Next: nextOf(v.form.Get("next"))})
}

func (c *loginHandlers) login(v *view) error {
	next := nextOf(v.form.Get("next"))
	key, err := c.Auth.Login(strings.TrimSpace(v.form.Get("key")))
	wrong := ""
	switch {
	case err != nil:
		wrong = v.say("존재하지 않거나 폐기된 키입니다.", "There is no such key, or it was revoked.")
	case !see.HasRole(key.Role):
		wrong = v.say("service와 shop 역할의 키는 시스템용이므로 로그인할 수 없습니다. 본인의 키를 사용하세요.", "A key of the role service or shop is for systems and cannot log in. Use a key of your own.")
	}
	if wrong != "" {
		return v.render(http.StatusForbidden, "login", v.say("로그인", "Log in"), loginPage{Next: next, Wrong: wrong})
	}
	now := c.Clock()
	begun := now
	if !begun.After(key.LoggedOutAt) { // another node with a fast clock set the logout
		begun = key.LoggedOutAt.Add(time.Microsecond)
	}
	c.keep(v.w, c.seal.write(session{Key: key.ID, Issued: begun, Seen: now}))
	return v.redirect(next)
}

// logout ends all earlier sessions of the key, so that a copy of the cookie is of no use.
func (c *loginHandlers) logout(v *view) error {
	now := c.Clock()
	if s, key, err := c.session(v.r, now); err == nil {
		if now.Before(s.Issued) { // another node with a fast clock began the session
			now = s.Issued
		}
		if err := c.Deployment.EndSessions(v.r.Context(), key.ID, now); err != nil {
			return err
		}
		if err := c.Auth.Reload(v.r.Context()); err != nil {
			return err
		}
	}
	c.keep(v.w, "")
	return v.redirect(Root + "/login")
}

// nextOf returns the page of the console to show after a login. Another site may have put a link of its own there. http.Redirect cleans a path only
// afterwards, and browsers treat a backslash like a slash.
func nextOf(next string) string {
	u, err := url.Parse(next) // this refuses control characters
	if err != nil || u.Scheme != "" || u.Host != "" || path.Clean(u.Path) != u.Path || strings.Contains(next+u.Path, `\`) {
		return Root
	}
	if u.Path != Root && !strings.HasPrefix(u.Path, Root+"/") {
		return Root
	}
	return next
}
