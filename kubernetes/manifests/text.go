package manifests

// Text returns the objects of a profile as one YAML stream, for kubectl apply.
func Text(p Profile) ([]byte, error) {
	objs, err := Objects(p)
	if err != nil {
		return nil, err
	}
	return encode(objs)
}

// NamespacedText returns what an account needs that has rights in some namespaces only, for kubectl apply.
func NamespacedText(p Profile, namespaces []string) ([]byte, error) {
	objs, err := Namespaced(p, namespaces)
	if err != nil {
		return nil, err
	}
	return encode(objs)
}
