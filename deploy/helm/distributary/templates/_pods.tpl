{{- /* The driver's pod. Takes `root`, and `container`: the name that the container must have. What a SparkApplication says
elsewhere (image, arguments, memory) stands in the Deployment. */ -}}
{{- define "distributary.driverPod" -}}
{{- $fullname := include "distributary.fullname" .root -}}
{{- $deployment := eq .root.Values.mode "deployment" -}}
{{- $asksKubernetes := include "distributary.hasExecutors" .root -}}
{{- with .root.Values -}}
metadata:
  labels:
    {{- include "distributary.selector" $.root | nindent 4 }}
    app.kubernetes.io/component: driver
    {{- with .podLabels }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  annotations:
    # Tables are followed without a restart: the checksum leaves out the config's settings of tables.
    checksum/config: {{ include "distributary.configChecksum" $.root }}
    {{- with .podAnnotations }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
spec:
  serviceAccountName: {{ include "distributary.serviceAccount" $.root }}
  automountServiceAccountToken: {{ ternary true false (ne $asksKubernetes "") }}
  # On SIGTERM the service finishes the batch in flight. A batch that is cut off is done again, so this is not about
  # safety but about not doing work twice.
  terminationGracePeriodSeconds: {{ .terminationGracePeriodSeconds }}
  securityContext:
    {{- toYaml .podSecurityContext | nindent 4 }}
  {{- with .imagePullSecrets }}
  imagePullSecrets:
    {{- range . }}
    - name: {{ . }}
    {{- end }}
  {{- end }}
  containers:
    - name: {{ $.container }}
      {{- if $deployment }}
      image: {{ include "distributary.image" $.root | quote }}
      imagePullPolicy: {{ .image.pullPolicy }}
      args: [run]
      resources:
        {{- toYaml .resources | nindent 8 }}
      {{- end }}
      ports:
        - name: http
          containerPort: {{ .config.http.port }}
      startupProbe:
        httpGet: {path: /livez, port: http}
        periodSeconds: 5
        failureThreshold: {{ max 1 (div .probes.startupSeconds 5) }}
      livenessProbe:
        httpGet: {path: /livez, port: http}
        periodSeconds: 30
        timeoutSeconds: 5
        failureThreshold: 4
      readinessProbe:
        httpGet: {path: /readyz, port: http}
        periodSeconds: 10
        timeoutSeconds: 5
      securityContext:
        {{- toYaml .securityContext | nindent 8 }}
      {{- $cores := "" }}
      {{- if $deployment }}
      {{- $cores = include "distributary.cores" .resources }}
      {{- end }}
      {{- if or .env $cores (and $deployment $asksKubernetes) }}
      env:
        {{- with $cores }}
        {{- . | nindent 8 }}
        {{- end }}
        {{- if and $deployment $asksKubernetes }}
        - name: POD_NAME
          valueFrom: {fieldRef: {fieldPath: metadata.name}}
        - name: POD_IP
          valueFrom: {fieldRef: {fieldPath: status.podIP}}
        {{- end }}
        {{- with .env }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
      {{- end }}
      {{- with .envFrom }}
      envFrom:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      volumeMounts:
        # Whole ConfigMaps, no subPath: Kubernetes never brings that up to date.
        - {name: config, mountPath: /etc/distributary, readOnly: true}
        - {name: tables, mountPath: /etc/distributary/tables, readOnly: true}
        {{- if and $deployment $asksKubernetes }}
        - {name: executor, mountPath: /etc/distributary-executor, readOnly: true}
        {{- end }}
        {{- include "distributary.mounts" $.root | nindent 8 }}
  volumes:
    - name: config
      configMap: {name: {{ $fullname }}-config}
    - name: tables
      configMap: {name: {{ $fullname }}-tables}
    {{- if and $deployment $asksKubernetes }}
    - name: executor
      configMap: {name: {{ $fullname }}-executor}
    {{- end }}
    {{- include "distributary.volumes" $.root | nindent 4 }}
  {{- include "distributary.placement" $.root | nindent 2 }}
{{- end }}
{{- end }}

{{- /* The template of an executor's pod; Spark adds image, arguments, memory and ports. */ -}}
{{- define "distributary.executorPod" -}}
metadata:
  labels:
    {{- include "distributary.selector" . | nindent 4 }}
    app.kubernetes.io/component: executor
    {{- with .Values.podLabels }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
spec:
  serviceAccountName: {{ include "distributary.serviceAccount" . }}
  automountServiceAccountToken: false
  securityContext:
    {{- toYaml .Values.podSecurityContext | nindent 4 }}
  {{- with .Values.imagePullSecrets }}
  imagePullSecrets:
    {{- range . }}
    - name: {{ . }}
    {{- end }}
  {{- end }}
  containers:
    - name: spark-kubernetes-executor
      securityContext:
        {{- toYaml .Values.securityContext | nindent 8 }}
      volumeMounts:
        {{- if .Values.persistence.enabled }}
        - {name: data, mountPath: /data}
        {{- end }}
        - {name: tmp, mountPath: /tmp}
        - {name: spark-local-dir-1, mountPath: /tmp/spark}
  volumes:
    {{- if .Values.persistence.enabled }}
    - name: data
      persistentVolumeClaim: {claimName: {{ include "distributary.claim" . }}}
    {{- end }}
    - name: tmp
      emptyDir: {sizeLimit: {{ .Values.scratch.tmpSize }}}
    - name: spark-local-dir-1
      emptyDir: {sizeLimit: {{ .Values.scratch.sparkSize }}}
  {{- with .Values.executors.nodeSelector }}
  nodeSelector:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.executors.tolerations }}
  tolerations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.executors.affinity }}
  affinity:
    {{- toYaml . | nindent 4 }}
  {{- end }}
{{- end }}

{{- /* The cores that a container's resources grant: without a limit it sees all processors of its node. */ -}}
{{- define "distributary.cores" -}}
{{- $limit := toString (dig "limits" "cpu" "" .) -}}
{{- if or $limit (dig "requests" "cpu" "" .) -}}
# What is granted: without a limit the container sees all processors of its node.
- name: DISTRIBUTARY_CORES
  valueFrom: {resourceFieldRef: {resource: {{ ternary "limits.cpu" "requests.cpu" (ne $limit "") }}}}
{{- end }}
{{- end }}

{{- /* What driver and jobs mount beside their configs. */ -}}
{{- define "distributary.mounts" -}}
{{- range $i, $secret := .Values.secrets -}}
- {name: secret-{{ $i }}, mountPath: {{ $secret.mountPath }}, readOnly: true}
{{ end -}}
{{- if .Values.persistence.enabled -}}
- {name: data, mountPath: /data}
{{ end -}}
- {name: tmp, mountPath: /tmp}
- {name: spark-local-dir-1, mountPath: /tmp/spark}
{{- with .Values.extraVolumeMounts }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- define "distributary.volumes" -}}
{{- range $i, $secret := .Values.secrets -}}
- name: secret-{{ $i }}
  secret: {secretName: {{ $secret.name }}, defaultMode: 0440}
{{ end -}}
{{- if .Values.persistence.enabled -}}
- name: data
  persistentVolumeClaim: {claimName: {{ include "distributary.claim" . }}}
{{ end -}}
- name: tmp
  emptyDir: {sizeLimit: {{ .Values.scratch.tmpSize }}}
# Decoded rows of large batches, and what Spark spills while it sorts and merges. Spark knows volumes of this name for its own.
- name: spark-local-dir-1
  emptyDir: {sizeLimit: {{ .Values.scratch.sparkSize }}}
{{- with .Values.extraVolumes }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- /* Where driver and jobs run. */ -}}
{{- define "distributary.placement" -}}
{{- $place := dict -}}
{{- range $key := list "nodeSelector" "tolerations" "affinity" "priorityClassName" -}}
{{- with get $.Values $key -}}
{{- $_ := set $place $key . -}}
{{- end -}}
{{- end -}}
{{- with $place -}}
{{- toYaml . -}}
{{- end -}}
{{- end }}

{{- /* The pod of a command that starts a Spark of its own. Takes `root`, `name` and `job`: an entry of `jobs`. */ -}}
{{- define "distributary.jobPod" -}}
{{- $resources := default .root.Values.resources .job.resources -}}
metadata:
  labels:
    {{- include "distributary.selector" .root | nindent 4 }}
    app.kubernetes.io/component: job
    {{- with .root.Values.podLabels }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  {{- with .root.Values.podAnnotations }}
  annotations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
spec:
  # What it finds is not otherwise at a second try.
  restartPolicy: Never
  serviceAccountName: {{ include "distributary.serviceAccount" .root }}
  automountServiceAccountToken: false
  securityContext:
    {{- toYaml .root.Values.podSecurityContext | nindent 4 }}
  {{- with .root.Values.imagePullSecrets }}
  imagePullSecrets:
    {{- range . }}
    - name: {{ . }}
    {{- end }}
  {{- end }}
  containers:
    - name: {{ .name }}
      image: {{ include "distributary.image" .root | quote }}
      imagePullPolicy: {{ .root.Values.image.pullPolicy }}
      args:
        {{- toYaml .job.args | nindent 8 }}
      resources:
        {{- toYaml $resources | nindent 8 }}
      securityContext:
        {{- toYaml .root.Values.securityContext | nindent 8 }}
      env:
        - name: DISTRIBUTARY_CONFIG
          value: /etc/distributary/job-{{ .name }}.yaml
        {{- with include "distributary.cores" $resources }}
        {{- . | nindent 8 }}
        {{- end }}
        {{- with .root.Values.env }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
      {{- with .root.Values.envFrom }}
      envFrom:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      volumeMounts:
        - {name: config, mountPath: /etc/distributary, readOnly: true}
        - {name: tables, mountPath: /etc/distributary/tables, readOnly: true}
        {{- include "distributary.mounts" .root | nindent 8 }}
  volumes:
    - name: config
      configMap: {name: {{ include "distributary.fullname" .root }}-config}
    - name: tables
      configMap: {name: {{ include "distributary.fullname" .root }}-tables}
    {{- include "distributary.volumes" .root | nindent 4 }}
  {{- $place := include "distributary.placement" .root | fromYaml }}
  {{- if and .root.Values.persistence.enabled (not (has "ReadWriteMany" .root.Values.persistence.accessModes)) }}
  {{- /* A volume that one node mounts: the job has to be where the driver is. */}}
  {{- $driver := dict "matchLabels" (merge (include "distributary.selector" .root | fromYaml) (dict "app.kubernetes.io/component" "driver")) }}
  {{- $near := dict "topologyKey" "kubernetes.io/hostname" "labelSelector" $driver }}
  {{- $affinity := dict "podAffinity" (dict "requiredDuringSchedulingIgnoredDuringExecution" (list $near)) }}
  {{- $_ := set $place "affinity" (merge $affinity (default dict $place.affinity)) }}
  {{- end }}
  {{- with $place }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end }}
