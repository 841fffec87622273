package client

import (
	"context"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/url"
	"time"

	"slipway.dev/slipway/inventory"
)

// ImportRequest says which image to import under which name. OS and Release choose an entry of the catalogue; without
// an OS the files are given. Paths are those of the server and work through its socket only.
type ImportRequest struct {
	Name    string         `json:"name"`
	OS      string         `json:"os,omitempty"`
	Release string         `json:"release,omitempty"`
	Arch    inventory.Arch `json:"arch,omitempty"`
	From    string         `json:"from,omitempty"` // http(s) address, folder, or "package"
	Sums    string         `json:"sums,omitempty"` // URL or path of a list of SHA-256 or SHA-512 sums
	// SignatureKey is an armoured OpenPGP public key that must have signed the list, or the image's only file; Signature says where
	// the signature is, "" beside what it is of.
	SignatureKey string       `json:"signatureKey,omitempty"`
	Signature    string       `json:"signature,omitempty"`
	Files        []ImportFile `json:"files,omitempty"`
	KernelArgs   []string     `json:"kernelArgs,omitempty"`
	// Configs are the formats of configuration that the image reads, ConfigArgs the arguments for them.
	Configs     []inventory.ImageConfig `json:"configs,omitempty"`
	ConfigArgs  []string                `json:"configArgs,omitempty"`
	Set         map[string]string       `json:"set,omitempty"`
	MemoryMiB   int                     `json:"memoryMiB,omitempty"`
	IsInstaller *bool                   `json:"isInstaller,omitempty"`
	CPULevel    string                  `json:"cpuLevel,omitempty"`
	// DiskFormat, DiskBytes, Remote and SeedLabel are about disk images; see inventory.Image.
	DiskFormat string `json:"diskFormat,omitempty"`
	DiskBytes  int64  `json:"diskBytes,omitempty"`
	Remote     string `json:"remote,omitempty"`
	SeedLabel  string `json:"seedLabel,omitempty"`
}

// ImportFile is a file that the request itself names.
type ImportFile struct {
	Role   inventory.Role   `json:"role"`
	Name   string           `json:"name,omitempty"`
	Source string           `json:"source"`
	SHA256 inventory.Digest `json:"sha256,omitempty"`
}

// Job is an import on the server; it goes on whether or not anybody watches.
type Job struct {
	ID        string    `json:"id"`
	Image     string    `json:"image"`
	State     string    `json:"state"` // waiting, running, done or failed
	Progress  Progress  `json:"progress"`
	Error     string    `json:"error,omitempty"`
	Hint      string    `json:"hint,omitempty"`
	CreatedAt time.Time `json:"createdAt"`
	StartedAt time.Time `json:"startedAt,omitzero"`
	EndedAt   time.Time `json:"endedAt,omitzero"`
	Revision  int64     `json:"revision"`
}

// IsEnded reports whether the job is in a final state.
func (j Job) IsEnded() bool { return j.State == "done" || j.State == "failed" }

// Progress is how far an import is.
type Progress struct {
	Step           string `json:"step"`
	File           string `json:"file,omitempty"`
	FileN          int    `json:"fileN,omitempty"`
	FilesN         int    `json:"filesN,omitempty"`
	Source         string `json:"source,omitempty"`
	Bytes          int64  `json:"bytes"`
	TotalBytes     int64  `json:"totalBytes,omitempty"`
	BytesPerSecond int64  `json:"bytesPerSecond,omitempty"`
	Note           string `json:"note,omitempty"`
}

// Import starts an import and returns its job at once.
func (c *Client) Import(ctx context.Context, r ImportRequest) (j Job, err error) {
	return j, c.call(ctx, http.MethodPost, "imports", nil, r, &j)
}

// Jobs returns the imports that the server remembers, oldest first.
func (c *Client) Jobs(ctx context.Context) (p Page[Job], err error) {
	return p, c.call(ctx, http.MethodGet, "imports", nil, nil, &p)
}

// Job returns an import as it is once it has changed since that revision; 0 returns it at once.
func (c *Client) Job(ctx context.Context, id string, revision int64) (j Job, err error) {
	return j, c.call(ctx, http.MethodGet, "imports/"+url.PathEscape(id), url.Values{"revision": {fmt.Sprint(revision)}}, nil, &j)
}

// RetryJob starts an import that failed once more, as a new one.
func (c *Client) RetryJob(ctx context.Context, id string) (j Job, err error) {
	return j, c.call(ctx, http.MethodPost, "imports/"+url.PathEscape(id)+"/retry", nil, nil, &j)
}

// CancelJob stops an import; what has arrived is kept for the next one.
func (c *Client) CancelJob(ctx context.Context, id string) error {
	return c.call(ctx, http.MethodDelete, "imports/"+url.PathEscape(id), nil, nil, nil)
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

// CatalogueEntry is what the catalogue knows of an operating system and a line of its releases.
type CatalogueEntry struct {
	OS          string                    `json:"os"`
	Releases    []string                  `json:"releases"`
	Title       string                    `json:"title"`
	Arch        map[inventory.Arch]string `json:"arch"`
	Vars        map[string]string         `json:"vars,omitempty"`
	MemoryMiB   int                       `json:"memoryMiB,omitempty"`
	CPULevel    string                    `json:"cpuLevel,omitempty"`
	IsInstaller bool                      `json:"isInstaller"`
	Chain       *struct {
		SignedBy []string `json:"signedBy"` // none: its kernels are not signed
		Loaders  string   `json:"loaders,omitempty"`
	} `json:"chain,omitempty"` // with Secure Boot on; nil: not known
	Base    string `json:"base,omitempty"`
	Sums    string `json:"sums,omitempty"`
	Package string `json:"package,omitempty"`
	Folder  string `json:"folder,omitempty"`
	Files   []struct {
		Role       inventory.Role `json:"role"`
		Name       string         `json:"name"`
		Paths      []string       `json:"paths"`
		IsUnlisted bool           `json:"isUnlisted,omitempty"`
	} `json:"files,omitempty"`
	KernelArgs []string `json:"kernelArgs,omitempty"`
	ConfigArgs []string `json:"configArgs,omitempty"`
	Parameters []struct {
		Name  string `json:"name"`
		About string `json:"about"`
	} `json:"parameters,omitempty"`
	Configs []struct {
		Format     string `json:"format"`
		Version    string `json:"version"`
		InitrdPath string `json:"initrdPath,omitempty"`
	} `json:"configs,omitempty"`
	Notes  string `json:"notes,omitempty"`
	Origin string `json:"origin"`
}

// Catalogue returns what can be imported by name.
func (c *Client) Catalogue(ctx context.Context) (p Page[CatalogueEntry], err error) {
	return p, c.call(ctx, http.MethodGet, "catalogue", nil, nil, &p)
}

// Fault is an artefact that is not as the store says.
type Fault struct {
	Digest  inventory.Digest `json:"digest"`
	Problem string           `json:"problem"` // missing, damaged or unreadable
	Images  []string         `json:"images,omitempty"`
	Hint    string           `json:"hint"`
}

// VerifyArtefacts has the server read every artefact again; it takes as long as its disk needs.
func (c *Client) VerifyArtefacts(ctx context.Context) (p Page[Fault], err error) {
	return p, c.call(ctx, http.MethodPost, "artefacts/verify", nil, nil, &p)
}

// Pruned says which artefacts were removed.
type Pruned struct {
	Removed    []inventory.Digest `json:"removed"`
	FreedBytes int64              `json:"freedBytes"`
	Kept       []inventory.Digest `json:"kept,omitempty"`
	IsDryRun   bool               `json:"isDryRun,omitempty"`
}

// PruneArtefacts removes what no image uses, or with isDryRun says what that is.
func (c *Client) PruneArtefacts(ctx context.Context, isDryRun bool) (p Pruned, err error) {
	return p, c.call(ctx, http.MethodPost, "artefacts/prune", dryRun(isDryRun), nil, &p)
}

func dryRun(is bool) url.Values {
	if is {
		return url.Values{"dryRun": {"true"}}
	}
	return nil
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
