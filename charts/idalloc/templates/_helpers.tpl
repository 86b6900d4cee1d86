{{- define "idalloc.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 50 | trimSuffix "-" }}
{{- end }}

{{- /* The names of a release begin with this. */ -}}
{{- define "idalloc.fullname" -}}
{{- $name := include "idalloc.name" . }}
{{- $full := ternary .Release.Name (printf "%s-%s" .Release.Name $name) (contains $name .Release.Name) }}
{{- default $full .Values.fullnameOverride | trunc 50 | trimSuffix "-" }}
{{- end }}

{{- define "idalloc.controller" -}}
{{ include "idalloc.fullname" . }}-controller
{{- end }}

{{- /* The webhook's objects. */ -}}
{{- define "idalloc.webhook" -}}
{{ include "idalloc.fullname" . }}-webhook
{{- end }}

{{- /* policy or webhook: what completes new pods. Without a cluster, helm template knows only a version. */ -}}
{{- define "idalloc.admission" -}}
{{- if ne .Values.admission "auto" }}{{ .Values.admission }}
{{- else if or (.Capabilities.APIVersions.Has "admissionregistration.k8s.io/v1/MutatingAdmissionPolicy") (semverCompare ">=1.36.0-0" .Capabilities.KubeVersion.Version) }}policy
{{- else }}webhook
{{- end }}
{{- end }}

{{- /* The Secret that cert-manager writes. The one that the controller writes has another name, so neither takes over the other's. */ -}}
{{- define "idalloc.certificate" -}}
{{ include "idalloc.webhook" . }}-certificate
{{- end }}

{{- define "idalloc.account" -}}
{{- $a := .Values.controller.serviceAccount }}
{{- $a.name | default (ternary (include "idalloc.controller" .) "default" $a.create) }}
{{- end }}

{{- /* What every object has beside its app.kubernetes.io/name. */ -}}
{{- define "idalloc.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
app.kubernetes.io/part-of: idalloc
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
{{- with .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- define "idalloc.selector" -}}
app.kubernetes.io/name: idalloc-controller
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- /* The metadata of an object of the controller in the namespace of the release. */ -}}
{{- define "idalloc.metadata" -}}
name: {{ include "idalloc.controller" . }}
namespace: {{ .Release.Namespace }}
labels:
  app.kubernetes.io/name: idalloc-controller
  {{- include "idalloc.labels" . | nindent 2 }}
{{- end }}

{{- /* An image: a list of the root and the values of the image. */ -}}
{{- define "idalloc.image" -}}
{{- $root := index . 0 }}{{ $i := index . 1 }}
{{- with (default $i.registry ($root.Values.global).imageRegistry) }}{{ . }}/{{ end }}{{ $i.repository }}
{{- if or $i.tag (not $i.digest) }}:{{ default $root.Chart.AppVersion $i.tag }}{{ end }}
{{- with $i.digest }}@{{ . }}{{ end }}
{{- end }}

{{- /* A file of config, with the names of this release: a dict of root and file. */ -}}
{{- define "idalloc.config" -}}
{{- $root := .root }}{{ $v := .root.Values }}{{ $file := .file }}
{{- $controller := include "idalloc.controller" $root }}
{{- $text := $root.Files.Get (printf "files/%s.yaml" $file)
  | replace "system:serviceaccount:idalloc-system:idalloc-controller" (printf "system:serviceaccount:%s:%s" $root.Release.Namespace (include "idalloc.account" $root))
  | replace "ghcr.io/idalloc/idalloc:v0.1.0" (include "idalloc.image" (list $root $v.inject.image)) }}
{{- if hasPrefix "assign/" $file }}
{{- $text = $text | replace "idalloc-assign" (printf "%s-assign" (include "idalloc.fullname" $root))
  | replace "== 'idalloc-controller'" (printf "== '%s'" $controller) }}
{{- $text = regexReplaceAll "(?m)(name|policyName): idalloc-controller$" $text (printf "${1}: %s" $controller) }}
{{- end }}
{{- if and $v.controller.namespaces (hasPrefix "inject/" $file) }}
{{- $text = regexReplaceAll "(?m)(name|policyName): idalloc-(inject|strategy)$" $text (printf "${1}: %s-${2}" (include "idalloc.fullname" $root)) }}
{{- end }}
{{- range splitList "\n---\n" $text }}
{{- $o := fromYaml . }}
{{- $_ := set $o.metadata "labels" (merge $o.metadata.labels (fromYaml (include "idalloc.labels" $root))) }}
{{- if hasPrefix "policy/" $file }}
{{- if eq $o.kind "ValidatingAdmissionPolicyBinding" }}
{{- $_ := set $o.spec "validationActions" $v.validationActions }}
{{- end }}
{{- if not $v.aggregateToAdmin }}
{{- $_ := unset $o.metadata.labels "rbac.authorization.k8s.io/aggregate-to-admin" }}
{{- end }}
{{- end }}
{{- if eq $file "assign/controller" }}
{{- range $v.controller.kinds }}
{{- $p := splitn "." 2 . }}
{{- $rule := dict "apiGroups" (list $p._1) "apiVersions" (list "*") "operations" (list "*") "resources" (list $p._0 (printf "%s/*" $p._0)) }}
{{- $_ := set $o.spec.matchConstraints "resourceRules" (append $o.spec.matchConstraints.resourceRules $rule) }}
{{- end }}
{{- end }}
{{- /* inject/refusal-binding is for all namespaces: elsewhere a pod with the label would run without the sidecar. */ -}}
{{- if and $v.controller.namespaces (has $file (list "assign/binding" "assign/refusal-binding" "inject/binding" "inject/strategy-binding")) }}
{{- $in := dict "key" "kubernetes.io/metadata.name" "operator" "In" "values" $v.controller.namespaces }}
{{- $_ := set $o.spec "matchResources" (dict "namespaceSelector" (dict "matchExpressions" (list $in))) }}
{{- end }}
---
{{ toYaml $o }}
{{- end }}
{{- end }}

{{- /* A token that the pod alone has, as config/controller mounts it. */ -}}
{{- define "idalloc.token" -}}
- name: token
  projected:
    defaultMode: 0444
    sources:
      - serviceAccountToken:
          path: token
          expirationSeconds: 3600
      - configMap:
          name: kube-root-ca.crt
          items:
            - key: ca.crt
              path: ca.crt
      - downwardAPI:
          items:
            - path: namespace
              fieldRef:
                fieldPath: metadata.namespace
{{- end }}

{{- /* The fields of an endpoint that PodMonitor and ServiceMonitor share: a list of the root, the values of the monitor and what names a token if they do not. */ -}}
{{- define "idalloc.endpoint" -}}
{{- $endpoint := index . 1 }}
{{- if (index . 0).Values.controller.metrics.authentication }}
{{- $token := ternary (dict) (index . 2) (or $endpoint.authorization $endpoint.bearerTokenFile $endpoint.bearerTokenSecret | empty | not) }}
{{- $endpoint = merge (dict "scheme" (default "https" $endpoint.scheme) "tlsConfig" (default (dict "insecureSkipVerify" true) $endpoint.tlsConfig)) $token $endpoint }}
{{- end }}
- port: metrics
  {{- range $key, $value := omit $endpoint "enabled" "labels" }}
  {{- if $value }}
  {{- toYaml (dict $key $value) | nindent 2 }}
  {{- end }}
  {{- end }}
{{- end }}

{{- /* The metadata of the objects of "helm test". */ -}}
{{- define "idalloc.hook" }}
  labels:
    app.kubernetes.io/name: idalloc-check
    {{- include "idalloc.labels" . | nindent 4 }}
  annotations:
    helm.sh/hook: test
    helm.sh/hook-delete-policy: before-hook-creation,hook-succeeded
{{- end }}
