package write

import (
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"slipway.dev/slipway/agent/wire"
)

func TestAnArtefactOfARegistryIsWritten(t *testing.T) {
	srv := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	defer srv.Close()
	address := strings.TrimPrefix(srv.URL, "http://") + "/images/debian:12"
	raw := diskImage(t, 24*mib)
	layer := static.NewLayer(pack(t, "raw.zst", raw), types.MediaType("application/vnd.example.disk"))
	notes := static.NewLayer([]byte("read me"), types.MediaType("text/plain"))
	img, err := mutate.Append(empty.Image,
		mutate.Addendum{Layer: notes, Annotations: map[string]string{titleAnnotation: "README"}},
		mutate.Addendum{Layer: layer, Annotations: map[string]string{titleAnnotation: "debian-12.raw.zst"}})
	if err != nil {
		t.Fatal(err)
	}
	ref, err := name.ParseReference(address)
	if err != nil {
		t.Fatal(err)
	}
	if err := remote.Write(ref, img, remote.WithContext(t.Context())); err != nil {
		t.Fatal(err)
	}
	digest, _ := layer.Digest()
	r := newRack(t, 40*mib)
	for _, file := range []wire.ImageFile{{URL: "oci://" + address}, {URL: "oci://" + address, Digest: digest.String(), Format: "raw.zst"}} {
		report, err := r.do(wire.WriteTask{Image: file})
		if err != nil {
			t.Fatal(err)
		}
		if report.Write.Digest != digest.String() || len(report.Write.Chain) != 1 || !strings.Contains(string(report.Write.Chain[0]), digest.String()) {
			t.Errorf("%+v", report.Write)
		}
		checkDisk(t, r, "sda", raw)
	}
	for says, url := range map[string]string{"no layer": "oci://" + address, "no such image": "oci://" + address + "-none", "not of a registry": "oci://"} {
		file := wire.ImageFile{URL: url, Digest: "sha256:" + strings.Repeat("1", 64)}
		if _, err := r.do(wire.WriteTask{Image: file}); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", says, err)
		}
	}
}

func TestTheLayerThatIsADiskIsChosen(t *testing.T) {
	for _, c := range []struct{ title, kind, want string }{
		{"x.raw.gz", "application/octet-stream", "raw.gz"},
		{"disk.QCOW2", "", "qcow2"},
		{"", "application/vnd.example.disk.qcow2", "qcow2"},
		{"", "application/vnd.example.raw+zstd", "raw.zst"},
		{"", "application/vnd.oci.image.layer.v1.tar+gzip", ""},
		{"", "application/vnd.cncf.helm", ""},
	} {
		var d v1.Descriptor
		text := fmt.Sprintf(`{"mediaType":%q,"annotations":{%q:%q}}`, c.kind, titleAnnotation, c.title)
		if err := json.Unmarshal([]byte(text), &d); err != nil {
			t.Fatal(err)
		}
		if got := layerFormat(d); got != c.want {
			t.Errorf("%q of %q is %q, not %q", c.title, c.kind, got, c.want)
		}
	}
}
