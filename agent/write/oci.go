package write

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"net/http"
	"runtime"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"

	"slipway.dev/slipway/inventory"
)

const titleAnnotation = "org.opencontainers.image.title"

// formats maps the ends of titles and media types to formats; the longer ends come first.
var formats = []struct{ end, format string }{
	{".raw.gz", "raw.gz"},
	{".img.gz", "raw.gz"},
	{"+gzip", "raw.gz"},
	{".raw.zst", "raw.zst"},
	{".img.zst", "raw.zst"},
	{"+zstd", "raw.zst"},
	{".raw.xz", "raw.xz"},
	{".img.xz", "raw.xz"},
	{"+xz", "raw.xz"},
	{".qcow2", "qcow2"},
	{"qcow2", "qcow2"},
	{".raw", "raw"},
	{".img", "raw"},
}

func isOCI(url string) bool { return strings.HasPrefix(url, "oci://") }

// resolve turns an artefact of a registry into the address of one of its layers. The layer's digest then checks the
// download. The chain of documents, from the index to the manifest, lets the server prove which layer a tag meant.
func (img *image) resolve(ctx context.Context, client *http.Client) error {
	bad := func(err error, what string) error {
		if te, ok := errors.AsType[*transport.Error](err); ok && te.StatusCode == http.StatusNotFound {
			return inventory.Errorf(inventory.NotFound, "the registry has no such image")
		}
		return inventory.Errorf(inventory.Unavailable, "%s of the image cannot be fetched from the registry: %s", what, inventory.Clean(err.Error(), 300))
	}
	ref, err := name.ParseReference(strings.TrimPrefix(img.file.URL, "oci://"))
	if err != nil {
		return inventory.Errorf(inventory.Invalid, "the address of the image is not of a registry").WithHint("write it as oci://registry/name:tag")
	}
	base := http.DefaultTransport
	if client != nil && client.Transport != nil {
		base = client.Transport
	}
	// Anonymous: a task carries no credentials of a registry.
	rt, err := transport.NewWithContext(ctx, ref.Context().Registry, authn.Anonymous, base, []string{ref.Scope(transport.PullScope)})
	if err != nil {
		return bad(err, "the address")
	}
	got, err := remote.Get(ref, remote.WithContext(ctx), remote.WithTransport(rt), remote.WithPlatform(v1.Platform{OS: "linux", Architecture: runtime.GOARCH}))
	if err != nil {
		return bad(err, "the description")
	}
	found, err := got.Image() // of an index the manifest of this machine
	if err != nil {
		return bad(err, "the description")
	}
	manifest, err := found.Manifest()
	if err != nil {
		return bad(err, "the description")
	}
	raw, err := found.RawManifest()
	if err != nil {
		return bad(err, "the description")
	}
	// got.Manifest is the document behind the tag: the manifest itself, or an index of one manifest for each platform.
	img.chain = [][]byte{raw}
	if !bytes.Equal(raw, got.Manifest) {
		img.chain = [][]byte{got.Manifest, raw}
	}
	wanted := img.file.Digest
	if d, ok := ref.(name.Digest); ok && d.DigestStr() == wanted { // the digest is of the manifest: that names its layers
		wanted = ""
	}
	layer, format, err := chooseLayer(manifest.Layers, wanted)
	if err != nil {
		return err
	}
	img.file.Format = cmp.Or(img.file.Format, format)
	// copy checks the layer by these.
	img.file.Digest, img.file.SizeBytes = layer.Digest.String(), layer.Size
	reg := ref.Context().Registry
	// fetch.Source downloads the layer, and not remote.Layer, because it continues after a broken connection.
	img.source.URL = reg.Scheme() + "://" + reg.RegistryStr() + "/v2/" + ref.Context().RepositoryStr() + "/blobs/" + layer.Digest.String()
	img.source.Client = &http.Client{Transport: rt}
	return nil
}

// chooseLayer takes the layer with the wanted digest. Without a digest it takes the first layer that looks like a
// disk image.
func chooseLayer(layers []v1.Descriptor, digest string) (v1.Descriptor, string, error) {
	if digest != "" {
		i := slices.IndexFunc(layers, func(l v1.Descriptor) bool { return l.Digest.String() == digest })
		if i < 0 {
			return v1.Descriptor{}, "", inventory.Errorf(inventory.Invalid, "the image of the registry has no layer %s", inventory.Clean(digest, 80)).
				WithHint("its tag has moved since the image was added: add it again")
		}
		return layers[i], layerFormat(layers[i]), nil
	}
	for _, l := range layers {
		if f := layerFormat(l); f != "" && l.Digest.Algorithm == "sha256" {
			return l, f, nil
		}
	}
	return v1.Descriptor{}, "", inventory.Errorf(inventory.Invalid, "none of the %d layers is a disk image", len(layers)).
		WithHint("give its layer a title that ends with .raw, .raw.gz, .raw.zst, .raw.xz or .qcow2")
}

func layerFormat(l v1.Descriptor) string {
	title, kind := strings.ToLower(l.Annotations[titleAnnotation]), string(l.MediaType)
	for _, f := range formats {
		// The title comes first: media types of one tool name the packing, and those of another do not.
		if strings.HasSuffix(title, f.end) {
			return f.format
		}
	}
	// Layers of containers are archives, not disks.
	if strings.Contains(kind, "tar") || !strings.Contains(kind, "disk") && !strings.Contains(kind, "qcow2") && !strings.Contains(kind, "raw") {
		return ""
	}
	for _, f := range formats {
		if strings.HasSuffix(kind, f.end) {
			return f.format
		}
	}
	return "raw"
}
