// Package files carries the files of images between instances, over the link of package peer. Register answers other instances from the
// cache of this one, and Others asks them. Package copies decides what goes where, and checks all that comes.
package files

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"slipway.dev/slipway/cmd/slipway/serve/peer"
	"slipway.dev/slipway/images/copies"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/provision/duty"
)

const (
	root    = "/artefacts/"
	content = root + "sha256/"
	bring   = root + "bring"
	lacking = root + "lacking"

	// askFor bounds a question. The other end of bring waits for the file for some seconds.
	askFor = 10 * time.Second
	// mostLacking bounds a question about files. One instance has some hundred.
	mostLacking = 100_000
)

// Cache opens a file of this instance.
type Cache interface {
	Open(d inventory.Digest) (*os.File, inventory.Artefact, error)
}

// Copies are copies.Copies.
type Copies interface {
	Bring(ctx context.Context, f copies.File) (copies.Arrived, error)
	Lacking(of []inventory.Digest) []inventory.Digest
}

// Register adds the answers to the link.
func Register(link interface{ Handle(string, http.Handler) }, cache Cache, c Copies) {
	link.Handle("GET "+content+"{hex}", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { send(w, r, cache) }))
	link.Handle("POST "+bring, peer.Handler(c.Bring))
	link.Handle("POST "+lacking, peer.Handler(func(_ context.Context, of []inventory.Digest) ([]inventory.Digest, error) {
		if len(of) > mostLacking {
			return nil, inventory.Errorf(inventory.Invalid, "%d files in one question; %d are possible", len(of), mostLacking)
		}
		return c.Lacking(of), nil
	}))
}

// send sends a file, or the part from the offset in Range on.
func send(w http.ResponseWriter, r *http.Request, cache Cache) {
	d, err := inventory.ParseDigest("sha256:" + r.PathValue("hex"))
	if err != nil {
		peer.SendError(w, err)
		return
	}
	// Only what is here: if instances asked on for each other, two of them would wait for a file that none has.
	f, _, err := cache.Open(d)
	if err != nil {
		peer.SendError(w, err)
		return
	}
	defer f.Close()
	w.Header().Set("Content-Type", "application/octet-stream")
	http.ServeContent(w, r, "", time.Time{}, f)
}

// Others are the other instances that live. It implements copies.Peers.
type Others struct {
	http *http.Client // for questions
	bulk *http.Client // for files: a connection of its own for each, so that no decision waits behind an image
	seen func() ([]duty.Peer, bool)
}

// NewOthers returns Others. seen is Keeper.Others.
func NewOthers(c *peer.Client, seen func() ([]duty.Peer, bool)) *Others {
	return &Others{http: c.HTTP, bulk: &http.Client{Transport: c.Upgrade, CheckRedirect: c.HTTP.CheckRedirect}, seen: seen}
}

// Live implements copies.Peers. Instances that an admin drains come last: they stop soon. It also returns those whose life is unknown yet,
// because this instance has just started.
func (o *Others) Live(context.Context) (names []string, err error) {
	all, isKnown := o.seen()
	if !isKnown {
		return nil, inventory.Errorf(inventory.Unavailable, "it is not known yet which instances live").WithHint("it is within seconds")
	}
	slices.SortStableFunc(all, func(a, b duty.Peer) int { return order(a.IsDrained) - order(b.IsDrained) })
	for _, p := range all {
		if (p.Life == duty.Alive || p.Life == duty.Unknown) && len(p.Links) > 0 {
			names = append(names, p.Name)
		}
	}
	return names, nil
}

func order(last bool) int {
	if last {
		return 1
	}
	return 0
}

// at calls fn with the URL of an instance. It goes on to the next address only if a connection could not be made.
func (o *Others) at(name string, fn func(base string) error) error {
	all, _ := o.seen()
	err := inventory.Errorf(inventory.Unavailable, "instance %s is not known", name)
	for _, p := range all {
		if p.Name != name {
			continue
		}
		for _, link := range p.Links {
			if failed := fn("https://" + link); failed == nil || !peer.IsNotConnected(failed) {
				return failed
			} else if e, ok := errors.AsType[*inventory.Error](failed); ok {
				err = e
			}
		}
	}
	return err
}

// Bring implements copies.Peers.
func (o *Others) Bring(ctx context.Context, name string, f copies.File) (a copies.Arrived, err error) {
	ctx, cancel := context.WithTimeout(ctx, askFor)
	defer cancel()
	err = o.at(name, func(base string) error {
		a, err = peer.Call[copies.Arrived](ctx, o.http, base+bring, f)
		return err
	})
	return a, err
}

// Lacking implements copies.Peers.
func (o *Others) Lacking(ctx context.Context, name string, of []inventory.Digest) (lacks []inventory.Digest, err error) {
	ctx, cancel := context.WithTimeout(ctx, askFor)
	defer cancel()
	err = o.at(name, func(base string) error {
		lacks, err = peer.Call[[]inventory.Digest](ctx, o.http, base+lacking, of)
		return err
	})
	return lacks, err
}

// Fetch implements copies.Peers.
func (o *Others) Fetch(ctx context.Context, name string, d inventory.Digest, offset int64) (body io.ReadCloser, err error) {
	err = o.at(name, func(base string) error {
		body, err = o.fetch(ctx, base+content+d.Hex(), offset)
		return err
	})
	return body, err
}

func (o *Others) fetch(ctx context.Context, url string, offset int64) (io.ReadCloser, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, fmt.Errorf("ask another instance: %w", err)
	}
	if offset > 0 {
		r.Header.Set("Range", "bytes="+strconv.FormatInt(offset, 10)+"-")
	}
	answer, err := o.bulk.Do(r)
	if err != nil {
		return nil, &inventory.Error{Kind: inventory.Unavailable, Msg: "instance " + r.URL.Host + " does not answer", Err: err}
	}
	starts := offset == 0 && answer.StatusCode == http.StatusOK
	goesOn := answer.StatusCode == http.StatusPartialContent &&
		strings.HasPrefix(answer.Header.Get("Content-Range"), "bytes "+strconv.FormatInt(offset, 10)+"-")
	if starts || goesOn {
		return answer.Body, nil
	}
	defer answer.Body.Close()
	return nil, refusal(answer)
}

// refusal is the error of an answer without a file.
func refusal(answer *http.Response) error {
	var f struct {
		Kind inventory.Kind `json:"kind"`
		Msg  string         `json:"msg"`
	}
	text, _ := io.ReadAll(io.LimitReader(answer.Body, 64<<10))
	if json.Unmarshal(text, &f) == nil && f.Kind != "" {
		return &inventory.Error{Kind: f.Kind, Msg: inventory.Clean(f.Msg, 500)}
	}
	return inventory.Errorf(inventory.Unavailable, "instance %s answers %s", answer.Request.URL.Host, inventory.Clean(answer.Status, 100))
}
