package stack

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"

	rbac "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// manager is the name under which the lab writes what an admin would.
const manager = "custody-lab"

// Apply applies every object in the YAML files of a folder, in the order of the
// files' names, as "kubectl apply --server-side" does. It returns them as the API
// server has them.
func Apply(ctx context.Context, c client.Client, files fs.FS) ([]*unstructured.Unstructured, error) {
	objects, err := Parse(files)
	if err != nil {
		return nil, err
	}
	for _, o := range objects {
		if err := apply(ctx, c, o); err != nil {
			return nil, err
		}
	}
	return objects, nil
}

func apply(ctx context.Context, c client.Client, o *unstructured.Unstructured) error {
	err := c.Apply(ctx, client.ApplyConfigurationFromUnstructured(o), client.FieldOwner(manager), client.ForceOwnership)
	if err != nil {
		return fmt.Errorf("apply %s %s: %w", o.GetKind(), o.GetName(), err)
	}
	return nil
}

// Parse reads every object in the YAML files of a folder, in the order of the
// files' names.
func Parse(files fs.FS) ([]*unstructured.Unstructured, error) {
	names, err := fs.Glob(files, "*.yaml")
	if err != nil {
		return nil, err
	}
	var objects []*unstructured.Unstructured
	for _, name := range names {
		text, err := fs.ReadFile(files, name)
		if err != nil {
			return nil, err
		}
		decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096)
		for {
			o := &unstructured.Unstructured{}
			if err := decoder.Decode(&o.Object); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				return nil, fmt.Errorf("read %s: %w", filepath.Base(name), err)
			}
			if len(o.Object) > 0 {
				objects = append(objects, o)
			}
		}
	}
	return objects, nil
}

// installDefinitions applies CustomResourceDefinitions and returns when the API
// serves them.
func installDefinitions(ctx context.Context, c client.WithWatch, files fs.FS) error {
	definitions, err := Apply(ctx, c, files)
	if err != nil {
		return err
	}
	for _, d := range definitions {
		if err := established(ctx, c, d.GetName()); err != nil {
			return fmt.Errorf("wait until the API serves %s: %w", d.GetName(), err)
		}
	}
	return nil
}

func established(ctx context.Context, c client.WithWatch, name string) error {
	list := &unstructured.UnstructuredList{}
	list.SetAPIVersion("apiextensions.k8s.io/v1")
	list.SetKind("CustomResourceDefinitionList")
	changes, err := c.Watch(ctx, list, client.MatchingFields{"metadata.name": name})
	if err != nil {
		return err
	}
	defer changes.Stop()
	for e := range changes.ResultChan() {
		if e.Type == watch.Error {
			return apierrors.FromObject(e.Object)
		}
		if o, ok := e.Object.(*unstructured.Unstructured); ok && isEstablished(o) {
			return nil
		}
	}
	return fmt.Errorf("the watch ended: %w", context.Cause(ctx))
}

func isEstablished(definition *unstructured.Unstructured) bool {
	conditions, _, _ := unstructured.NestedSlice(definition.Object, "status", "conditions")
	for _, c := range conditions {
		if c, ok := c.(map[string]any); ok && c["type"] == "Established" && c["status"] == "True" {
			return true
		}
	}
	return false
}

// bind applies a program's roles and gives them to its account, and no others.
func bind(ctx context.Context, c client.Client, a account) error {
	objects, err := Parse(a.roles)
	if err != nil {
		return err
	}
	subject := rbac.Subject{Kind: rbac.ServiceAccountKind, Namespace: a.namespace, Name: a.name}
	for _, o := range objects {
		ref := rbac.RoleRef{APIGroup: rbac.GroupName, Kind: o.GetKind(), Name: o.GetName()}
		var binding client.Object
		switch o.GetKind() {
		case "ClusterRole":
			binding = &rbac.ClusterRoleBinding{ObjectMeta: meta.ObjectMeta{Name: o.GetName()},
				RoleRef: ref, Subjects: []rbac.Subject{subject}}
		case "Role":
			binding = &rbac.RoleBinding{ObjectMeta: meta.ObjectMeta{Namespace: o.GetNamespace(), Name: o.GetName()},
				RoleRef: ref, Subjects: []rbac.Subject{subject}}
		default:
			return fmt.Errorf("among the roles of %s there is a %s %s, which is none", a.name, o.GetKind(), o.GetName())
		}
		if err := apply(ctx, c, o); err != nil {
			return err
		}
		if err := c.Create(ctx, binding); err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("bind %s %s to account %s: %w", ref.Kind, ref.Name, a.name, err)
		}
	}
	return nil
}
