package proof

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
)

const (
	// maxChain is the longest way from the digest of an image in a registry to its disk: an index, and a manifest.
	maxChain      = 2
	maxChainBytes = 512 << 10
)

// Unchained says why a layer that was written is not the one that an image of a registry stands for, "" when it is. The
// chain is the documents of the registry, unchanged: the first has the expected digest, each names the next, and the last
// names the layer.
func Unchained(asked, layer string, chain [][]byte) string {
	if len(chain) == 0 {
		return "the agent does not show the manifest of the image; build the agent image again: slipway agent-image build"
	}
	if len(chain) > maxChain {
		return fmt.Sprintf("the agent shows %d documents of the image, and there are at most %d", len(chain), maxChain)
	}
	// The agent sends the documents, and only their digests are believed: each must be named by the one before.
	named := map[string]bool{asked: true}
	for i, doc := range chain {
		if len(doc) > maxChainBytes {
			return "a document of the image is too large"
		}
		sum := sha256.Sum256(doc)
		if digest := "sha256:" + hex.EncodeToString(sum[:]); !named[digest] {
			if i == 0 {
				return fmt.Sprintf("the manifest of the image has the digest %s, and the expected one is %s", digest, asked)
			}
			return fmt.Sprintf("the index of the image names no manifest %s", digest)
		}
		type descriptor struct {
			Digest string `json:"digest"`
		}
		var parsed struct {
			Manifests []descriptor `json:"manifests"`
			Layers    []descriptor `json:"layers"`
		}
		if json.Unmarshal(doc, &parsed) != nil {
			return "a document of the image is not JSON"
		}
		next := parsed.Manifests
		// Only the last document names layers. An index in its place names none, and is refused below.
		if i == len(chain)-1 {
			next = parsed.Layers
		}
		clear(named)
		for _, d := range next {
			named[d.Digest] = true
		}
	}
	if layer == "" || !named[layer] {
		return fmt.Sprintf("what was written has the digest %s, which the expected image does not name", cmp.Or(layer, "unknown"))
	}
	return ""
}
