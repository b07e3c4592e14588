{{- define "dr.name" -}}
{{- printf "%s-dr" .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- end -}}

{{- define "dr.labels" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end -}}

{{/* By these a program's pods are selected; (list . "mirror") */}}
{{- define "dr.selector" -}}
{{- $root := index . 0 -}}
app.kubernetes.io/name: {{ $root.Chart.Name }}
app.kubernetes.io/instance: {{ $root.Release.Name }}
app.kubernetes.io/component: {{ index . 1 }}
{{- end -}}

{{- define "dr.image" -}}
{{- $repository := required "image.repository is missing: build deploy/image/Containerfile and push it" .Values.image.repository -}}
{{- if .Values.image.digest -}}
{{ $repository }}@{{ .Values.image.digest }}
{{- else -}}
{{ $repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end -}}
{{- end -}}

{{/* dc.yaml, with the pages where probes and Prometheus reach them. */}}
{{- define "dr.configuration" -}}
{{- if not .Values.configuration -}}
{{- fail "configuration is missing: give dc.yaml there, or the name of a Secret that has it as existingSecret" -}}
{{- end -}}
{{- $metrics := dict "host" "0.0.0.0" "mirror_port" .Values.ports.mirror "failover_port" .Values.ports.failover "bootstrap_port" .Values.ports.bootstrap -}}
{{- if .Values.pages.tokenSecret.name -}}
{{- $_ := set $metrics "token_file" (printf "/etc/kafka-dr/pages/%s" .Values.pages.tokenSecret.key) -}}
{{- else -}}
{{- $_ := set $metrics "unguarded" true -}}
{{- end -}}
{{- toYaml (mergeOverwrite (deepCopy .Values.configuration) (dict "metrics" $metrics)) -}}
{{- end -}}

{{/* What the pods of a program are like; (list . "mirror") */}}
{{- define "dr.pod" -}}
{{- $root := index . 0 -}}
{{- $own := index $root.Values (index . 1) -}}
automountServiceAccountToken: false
enableServiceLinks: false
securityContext: {{- toYaml $root.Values.podSecurityContext | nindent 2 }}
{{- with $root.Values.imagePullSecrets }}
imagePullSecrets: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $own.nodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $own.tolerations }}
tolerations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{- define "dr.container" -}}
image: {{ include "dr.image" . | quote }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: {drop: [ALL]}
{{- end -}}

{{- define "dr.mounts" -}}
- {name: configuration, mountPath: /etc/kafka-dr/dc.yaml, subPath: dc.yaml, readOnly: true}
- {name: temporary, mountPath: /tmp}
{{- range .Values.secrets }}
- {name: {{ printf "secret-%s" . | quote }}, mountPath: {{ printf "/etc/kafka-dr/secrets/%s" . | quote }}, readOnly: true}
{{- end }}
{{- if .Values.pages.tokenSecret.name }}
- {name: pages, mountPath: /etc/kafka-dr/pages, readOnly: true}
{{- end }}
{{- end -}}

{{- define "dr.volumes" -}}
- name: configuration
  secret: {secretName: {{ .Values.existingSecret | default (printf "%s-configuration" (include "dr.name" .)) | quote }}}
- name: temporary
  emptyDir: {}
{{- range .Values.secrets }}
- name: {{ printf "secret-%s" . | quote }}
  secret: {secretName: {{ . | quote }}}
{{- end }}
{{- if .Values.pages.tokenSecret.name }}
- name: pages
  secret: {secretName: {{ .Values.pages.tokenSecret.name | quote }}}
{{- end }}
{{- end -}}

{{/* A daemon; (list . "mirror" (list "mirror" "run") ports), where ports is YAML or "". */}}
{{- define "dr.daemon" -}}
{{- $root := index . 0 -}}
{{- $component := index . 1 -}}
{{- $own := index $root.Values $component -}}
apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ include "dr.name" $root }}-{{ $component }}
  labels: {{- include "dr.labels" $root | nindent 4 }}
    app.kubernetes.io/component: {{ $component }}
spec:
  replicas: {{ $own.replicas }}
  selector:
    matchLabels: {{- include "dr.selector" (list $root $component) | nindent 6 }}
  template:
    metadata:
      labels: {{- include "dr.labels" $root | nindent 8 }}
        app.kubernetes.io/component: {{ $component }}
      {{- if not $root.Values.existingSecret }}
      annotations:
        checksum/configuration: {{ include "dr.configuration" $root | sha256sum }}
      {{- end }}
    spec: {{- include "dr.pod" (list $root $component) | nindent 6 }}
      terminationGracePeriodSeconds: 60
      topologySpreadConstraints:
        - maxSkew: 1
          topologyKey: kubernetes.io/hostname
          whenUnsatisfiable: ScheduleAnyway
          labelSelector:
            matchLabels: {{- include "dr.selector" (list $root $component) | nindent 14 }}
      containers:
        - name: {{ $component }}
          {{- include "dr.container" $root | nindent 10 }}
          args: {{ append (index . 2) "/etc/kafka-dr/dc.yaml" | toJson }}
          ports:
            - {name: pages, containerPort: {{ index $root.Values.ports $component }}}
            {{- with index . 3 }}{{ . | nindent 12 }}{{ end }}
          livenessProbe:
            httpGet: {path: /health/live, port: pages, scheme: {{ upper $root.Values.pages.scheme }}}
            initialDelaySeconds: 30
            periodSeconds: 10
            timeoutSeconds: 5
            failureThreshold: 6
          readinessProbe:
            httpGet: {path: /health/ready, port: pages, scheme: {{ upper $root.Values.pages.scheme }}}
            periodSeconds: 5
            timeoutSeconds: 5
          resources: {{- toYaml $own.resources | nindent 12 }}
          volumeMounts: {{- include "dr.mounts" $root | nindent 12 }}
      volumes: {{- include "dr.volumes" $root | nindent 8 }}
{{- end -}}
