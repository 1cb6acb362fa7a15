package client

import (
	"context"
	"fmt"
	"io"
	"net/http"
)

// ImportCodes appends the codes of another system to the list of a prize. It appends all of them, or none. For a campaign without prizes, prize is empty. csv is
// CSV whose first line has the heading code. If the list has these codes already, nothing is added, so an import may be repeated. A Problem with
// status 422 has the mistakes of the file in Lines. An import of a million codes takes minutes, so give ctx a deadline, and give a client that WithHTTP
// returned a long time-out.
func (c *Client) ImportCodes(ctx context.Context, id, prize string, csv io.Reader) (ImportedList, error) {
	path := campaignPath(id, "codes")
	if prize != "" {
		path = campaignPath(id, "prizes", prize, "codes")
	}
	patient := *c
	if t, ok := c.http.Transport.(*http.Transport); ok {
		own := t.Clone()
		own.ResponseHeaderTimeout = 0 // the answer comes when all is imported
		defer own.CloseIdleConnections()
		patient.http = &http.Client{Transport: own, CheckRedirect: c.http.CheckRedirect, Jar: c.http.Jar, Timeout: c.http.Timeout}
	}
	var done ImportedList
	err := patient.do(ctx, request{method: http.MethodPost, path: path, file: csv, header: http.Header{"Content-Type": {"text/csv"}}}, &done)
	if err != nil {
		return ImportedList{}, fmt.Errorf("import codes: %w", err)
	}
	return done, nil
}
