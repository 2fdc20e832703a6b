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
    # Tables are followed without a restart: neither they nor what the config says of them is in here.
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
      {{- $cpu := and $deployment (or (dig "limits" "cpu" "" .resources) (dig "requests" "cpu" "" .resources)) }}
      {{- if or .env $cpu (and $deployment $asksKubernetes) }}
      env:
        {{- if $cpu }}
        # What is granted: without a limit the container sees all processors of its node.
        - name: DISTRIBUTARY_CORES
          valueFrom: {resourceFieldRef: {resource: {{ ternary "limits.cpu" "requests.cpu" (ne (toString (dig "limits" "cpu" "" .resources)) "") }}}}
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
        {{- range $i, $secret := .secrets }}
        - {name: secret-{{ $i }}, mountPath: {{ $secret.mountPath }}, readOnly: true}
        {{- end }}
        {{- if .persistence.enabled }}
        - {name: data, mountPath: /data}
        {{- end }}
        - {name: tmp, mountPath: /tmp}
        - {name: spark-local-dir-1, mountPath: /tmp/spark}
        {{- with .extraVolumeMounts }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
  volumes:
    - name: config
      configMap: {name: {{ $fullname }}-config}
    - name: tables
      configMap: {name: {{ $fullname }}-tables}
    {{- if and $deployment $asksKubernetes }}
    - name: executor
      configMap: {name: {{ $fullname }}-executor}
    {{- end }}
    {{- range $i, $secret := .secrets }}
    - name: secret-{{ $i }}
      secret: {secretName: {{ $secret.name }}, defaultMode: 0440}
    {{- end }}
    {{- if .persistence.enabled }}
    - name: data
      persistentVolumeClaim: {claimName: {{ include "distributary.claim" $.root }}}
    {{- end }}
    - name: tmp
      emptyDir: {sizeLimit: {{ .scratch.tmpSize }}}
    # What Spark spills while it sorts and merges. Spark knows volumes of this name for its own.
    - name: spark-local-dir-1
      emptyDir: {sizeLimit: {{ .scratch.sparkSize }}}
    {{- with .extraVolumes }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  {{- with .nodeSelector }}
  nodeSelector:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .tolerations }}
  tolerations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .affinity }}
  affinity:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .priorityClassName }}
  priorityClassName: {{ . }}
  {{- end }}
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
