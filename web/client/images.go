package client

import (
	"context"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/url"

	"slipway.dev/slipway/images"
	"slipway.dev/slipway/inventory"
)

// ImportRequest says which image to import under which name. OS and Release choose an entry of the catalogue; without
// an OS the files are given. Paths are those of the server and work through its socket only.
type ImportRequest = images.ImportRequest

// ImportFile is a file that the request itself names.
type ImportFile = images.ImportFile

// Job is an import on the server; it goes on whether or not anybody watches.
type Job = images.Job

// Import starts an import and returns its job at once.
func (c *Client) Import(ctx context.Context, r ImportRequest) (j Job, err error) {
	return j, c.call(ctx, http.MethodPost, "imports", nil, r, &j)
}

// Job returns an import as it is once it has changed since that revision; 0 returns it at once.
func (c *Client) Job(ctx context.Context, id string, revision int64) (j Job, err error) {
	return j, c.call(ctx, http.MethodGet, c.Imports.at(id), url.Values{"revision": {fmt.Sprint(revision)}}, nil, &j)
}

// RetryJob starts an import that failed once more, as a new one.
func (c *Client) RetryJob(ctx context.Context, id string) (j Job, err error) {
	return j, c.call(ctx, http.MethodPost, c.Imports.at(id)+"/retry", nil, nil, &j)
}

// WatchJob returns an import whenever it has changed, until it has ended. A job that failed is not an error here.
func (c *Client) WatchJob(ctx context.Context, id string) iter.Seq2[Job, error] {
	return func(yield func(Job, error) bool) {
		var j Job
		for {
			next, err := c.Job(ctx, id, j.Revision)
			if err != nil {
				yield(j, err)
				return
			}
			isNew := next.Revision > j.Revision
			if j = next; isNew && !yield(j, nil) || j.IsEnded() {
				return
			}
		}
	}
}

// Catalogue returns what can be imported by name.
func (c *Client) Catalogue(ctx context.Context) (p Page[images.Entry], err error) {
	return p, c.call(ctx, http.MethodGet, "catalogue", nil, nil, &p)
}

// VerifyArtefacts has the server read every artefact again; it takes as long as its disk needs.
func (c *Client) VerifyArtefacts(ctx context.Context) (p Page[images.Fault], err error) {
	return p, c.call(ctx, http.MethodPost, "artefacts/verify", nil, nil, &p)
}

// PruneArtefacts removes what no image uses, or with isDryRun says what that is.
func (c *Client) PruneArtefacts(ctx context.Context, isDryRun bool) (p images.Pruned, err error) {
	return p, c.call(ctx, http.MethodPost, "artefacts/prune", params{"dryRun": isDryRun}.values(), nil, &p)
}

// Upload stores a file, so that an import can take it by its digest.
func (c *Client) Upload(ctx context.Context, name string, file io.Reader) (a inventory.Artefact, err error) {
	res, err := c.send(ctx, http.MethodPost, "artefacts", url.Values{"name": {name}}, file, func(r *http.Request) {
		r.Header.Set("Content-Type", "application/octet-stream")
	})
	if err != nil {
		return a, err
	}
	defer drain(res.Body)
	return a, decode(res.Body, &a)
}
