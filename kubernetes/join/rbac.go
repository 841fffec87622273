package join

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/yaml"

	"slipway.dev/slipway/inventory"
)

//go:embed rbac.yaml
var manifest []byte

// Manifest returns the YAML that an administrator of a cluster applies once. It lets hosts join through Slipway, and
// gives Slipway's account no more rights than it needs.
func Manifest() []byte { return bytes.Clone(manifest) }

//go:embed nodes.yaml
var nodesManifest []byte

// NodesManifest returns the YAML for a cluster whose nodes Slipway also drains and deletes: see package node.
func NodesManifest() []byte { return bytes.Clone(nodesManifest) }

// object is the head of an object in the manifest.
type object struct {
	Kind     string `json:"kind"`
	Metadata struct {
		Name      string `json:"name"`
		Namespace string `json:"namespace"`
	} `json:"metadata"`
}

// path returns where the API server keeps the object.
func (o object) path() string {
	const rbac = "/apis/rbac.authorization.k8s.io/v1"
	in := "/namespaces/" + o.Metadata.Namespace
	switch o.Kind {
	case "ClusterRole":
		return rbac + "/clusterroles/" + o.Metadata.Name
	case "ClusterRoleBinding":
		return rbac + "/clusterrolebindings/" + o.Metadata.Name
	case "Role":
		return rbac + in + "/roles/" + o.Metadata.Name
	case "RoleBinding":
		return rbac + in + "/rolebindings/" + o.Metadata.Name
	case "ServiceAccount":
		return "/api/v1" + in + "/serviceaccounts/" + o.Metadata.Name
	}
	return ""
}

// documents returns the objects of the manifest as JSON.
func documents() (out []json.RawMessage, heads []object, err error) {
	for doc := range bytes.SplitSeq(manifest, []byte("\n---\n")) {
		j, err := yaml.ToJSON(doc)
		if err != nil {
			return nil, nil, err
		}
		var o object
		if err := json.Unmarshal(j, &o); err != nil {
			return nil, nil, err
		}
		out, heads = append(out, j), append(heads, o)
	}
	return out, heads, nil
}

// Apply applies the manifest in a target's cluster. The account in the kubeconfig must have an administrator's rights
// there. It is safe to repeat; after an error a part of the objects may be there.
func (j *Joiner) Apply(ctx context.Context, target inventory.JoinTarget) error {
	if target.Kubeconfig == "" {
		return inventory.Errorf(inventory.Invalid, "target %s has no kubeconfig", target.Name).
			WithHint("hand this to an administrator of the cluster: slipway target rbac %s", target.Name)
	}
	c, err := j.connect(ctx, &target)
	if err != nil {
		return err
	}
	docs, heads, err := documents()
	if err != nil {
		return inventory.Errorf(inventory.Internal, "the RBAC manifest cannot be read: %w", err)
	}
	for i, doc := range docs {
		if err := c.apply(ctx, heads[i].path(), doc); err != nil {
			return failure(target.Name, "write "+heads[i].Kind+" "+heads[i].Metadata.Name, err)
		}
	}
	return nil
}

// apply writes an object by server-side apply, over what others have put into the same fields.
func (c *cluster) apply(ctx context.Context, path string, doc []byte) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	// By force, because a role that somebody has edited must not keep a right from Slipway, or give it one too many.
	return c.rbac.Patch(types.ApplyYAMLPatchType).AbsPath(path).Param("fieldManager", "slipway").Param("force", "true").Body(doc).Do(ctx).Error()
}
