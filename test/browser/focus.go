package browser

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/chromedp/cdproto/accessibility"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/dom"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// A Tip is what a page tells of an element that has the focus.
type Tip struct {
	Described                string  // to a screen reader, behind the element's own text
	Left, Top, Right, Bottom float64 // of what is drawn beside it, in CSS pixels of the window
}

// Focus goes to an element as by keyboard, and returns the tip that the page then shows: its ::after.
func (p *Page) Focus(element string) Tip {
	p.t.Helper()
	return steadily(p, func(ctx context.Context) (Tip, error) {
		return chromedp.Run(ctx, func(ctx context.Context, at *chromedp.Target) (tip Tip, err error) {
			wait := true // for what is drawn to find its place, once the element was scrolled into sight
			found, err := cdp.Call(ctx, at, runtime.Evaluate, runtime.EvaluateParams{
				Expression: `(async e => { e.focus({focusVisible: true}); for (let n = 0; n < 2; n++) await new Promise(requestAnimationFrame); return e; })(` + element + `)`, AwaitPromise: &wait,
			})
			if err != nil {
				return tip, err
			}
			if found.ExceptionDetails != nil {
				return tip, errors.New(found.ExceptionDetails.Exception.Description)
			}
			if tip.Described, err = described(ctx, at, found.Result.ObjectID); err != nil {
				return tip, err
			}
			node, err := cdp.Call(ctx, at, dom.DescribeNode, dom.DescribeNodeParams{ObjectID: found.Result.ObjectID})
			if err != nil || len(node.Node.PseudoElements) == 0 {
				return tip, err
			}
			box, err := cdp.Call(ctx, at, dom.GetBoxModel, dom.GetBoxModelParams{BackendNodeID: node.Node.PseudoElements[0].BackendNodeID})
			if err == nil {
				corners := box.Model.Border // x and y of each, from the upper left on
				tip.Left, tip.Top, tip.Right, tip.Bottom = corners[0], corners[1], corners[4], corners[5]
			}
			return tip, err
		})
	})
}

// described returns an element's accessible description.
func described(ctx context.Context, at *chromedp.Target, element runtime.RemoteObjectID) (text string, err error) {
	alone := false
	tree, err := cdp.Call(ctx, at, accessibility.GetPartialAXTree, accessibility.GetPartialAXTreeParams{ObjectID: element, FetchRelatives: &alone})
	if err != nil || len(tree.Nodes) == 0 || tree.Nodes[0].Description == nil {
		return "", err
	}
	return text, json.Unmarshal([]byte(tree.Nodes[0].Description.Value), &text)
}
