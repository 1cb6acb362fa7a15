package console

import (
	"errors"
	"net/http"
	"strings"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/auth"
	"github.com/firstcome/firstcome/internal/ledger"
)

// A keysPage lists the API keys.
type keysPage struct {
	Keys  []firstcome.Key
	Roles []firstcome.Role
	Plain string // a newly created key, which is shown only once
	Made  firstcome.Key
	Wrong string // why no key was created
	Name  string // as typed
}

// keyHandlers list, create and revoke API keys.
type keyHandlers struct{ *core }

func (c *keyHandlers) show(v *view) error { return c.render(v, http.StatusOK, keysPage{}) }

func (c *keyHandlers) render(v *view, status int, page keysPage) error {
	var err error
	if page.Keys, err = c.Deployment.Keys(v.r.Context()); err != nil {
		return err
	}
	page.Roles = firstcome.Roles()
	return v.render(status, "keys", v.say("키", "Keys"), page)
}

// create creates a key and shows it once. If the browser reloads the page, it asks before it sends the form again.
func (c *keyHandlers) create(v *view) error {
	name, role := strings.TrimSpace(v.form.Get("name")), firstcome.Role(v.form.Get("role"))
	plain, key, err := auth.NewKey(name, role)
	if err != nil {
		return c.render(v, http.StatusUnprocessableEntity, keysPage{Wrong: v.why(err), Name: name})
	}
	if err := c.Deployment.AddKey(v.r.Context(), v.who.Actor, key); err != nil {
		return err
	}
	return c.render(v, http.StatusOK, keysPage{Plain: plain, Made: key})
}

func (c *keyHandlers) revoke(v *view) error {
	err := c.Deployment.RevokeKey(v.r.Context(), v.who.Actor, v.r.PathValue("key"))
	if errors.Is(err, ledger.ErrNoKey) {
		return errLost
	}
	if err != nil {
		return err
	}
	return v.redirectDone(Root+"/keys", nil, "revoked")
}
